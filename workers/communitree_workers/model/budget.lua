-- One step of a job's budget.
--
-- KEYS: 1 spent (hash: usd, tokens)  2 reserved by calls under way (hash: id -> "usd tokens")  3 until when (zset)
-- ARGV: step, ceiling usd (-1: none), ceiling tokens (-1: none), usd, tokens, id, lease ms, ttl ms
--   "reserve": 0 and the reservation is made; 1 the ceiling is reached; 2 calls under way hold what is left, ask again
--   "settle":  the reservation goes, usd and tokens are spent
-- Returns {answer, usd spent, tokens spent}.
local step, max_usd, max_tokens = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local usd, tokens, id, lease, ttl = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local spent_usd = tonumber(redis.call('HGET', KEYS[1], 'usd') or '0')
local spent_tokens = tonumber(redis.call('HGET', KEYS[1], 'tokens') or '0')
local answer = 0
if step == 'settle' then
  redis.call('HDEL', KEYS[2], id)
  redis.call('ZREM', KEYS[3], id)
  spent_usd, spent_tokens = spent_usd + usd, spent_tokens + tokens
  redis.call('HSET', KEYS[1], 'usd', string.format('%.9f', spent_usd), 'tokens', string.format('%.0f', spent_tokens))
else
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)) do
    redis.call('ZREM', KEYS[3], gone)
    redis.call('HDEL', KEYS[2], gone)
  end
  local held_usd, held_tokens = 0, 0
  for _, held in ipairs(redis.call('HVALS', KEYS[2])) do
    local u, n = held:match('^(%S+) (%S+)$')
    held_usd, held_tokens = held_usd + tonumber(u), held_tokens + tonumber(n)
  end
  local function over(extra_usd, extra_tokens)
    return (max_usd >= 0 and spent_usd + extra_usd > max_usd) or (max_tokens >= 0 and spent_tokens + extra_tokens > max_tokens)
  end
  if over(usd, tokens) then answer = 1
  elseif over(usd + held_usd, tokens + held_tokens) then answer = 2
  else
    redis.call('HSET', KEYS[2], id, string.format('%.9f %.0f', usd, tokens))
    redis.call('ZADD', KEYS[3], now + lease, id)
  end
end
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ttl) end
return {answer, string.format('%.9f', spent_usd), string.format('%.0f', spent_tokens)}
