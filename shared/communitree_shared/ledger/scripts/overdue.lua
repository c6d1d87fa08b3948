-- For the reconciler: what must be published again, capped.
-- ARGV: outbox age (ms), lost age (ms), cap, lease (ms), whether Redis was away just now, as far as is known (0/1)
-- Returns {why, member, queue, body, …}; why: outbox | lease | lost
local outbox_age, lost_age, cap = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local at = now()
local out, seen = {}, {}

local function parts(m)
  local t, j, s, id = string.match(m, '^([^|]*)|([^|]*)|([^|]*)|(.*)$')
  return t, j, s, id
end

local function again(why, t, j, s, id)
  local m = member(t, j, s, id)
  if seen[m] then return end
  seen[m] = true
  local key = stage_key(t, j, s)
  local body = redis.call('HGET', key .. ':messages', id)
  if not body then
    redis.call('ZREM', P .. 'sent', m)
    redis.call('ZREM', P .. 'outbox', m)
    redis.call('HDEL', P .. 'republished', m)
    return
  end
  redis.call('ZADD', P .. 'sent', at, m)
  if why ~= 'lease' then redis.call('ZADD', flight_key(redis.call('HGET', key .. ':queues', id)), at, m) end
  if why == 'lost' then redis.call('HINCRBY', P .. 'republished', m, 1) end
  for _, value in ipairs({why, m, redis.call('HGET', key .. ':queues', id), body}) do out[#out + 1] = value end
end

local function stage_open(t, j, s)
  return is_open(job_state(t, j)) and redis.call('HGET', stage_key(t, j, s), 'state') == 'open'
end

-- 1. Written to the outbox, never published: its caller died in between.
for _, m in ipairs(redis.call('ZRANGEBYSCORE', P .. 'outbox', '-inf', at - outbox_age, 'LIMIT', 0, cap)) do
  local t, j, s, id = parts(m)
  if stage_open(t, j, s) then again('outbox', t, j, s, id) else redis.call('ZREM', P .. 'outbox', m) end
end

-- 2. A lease ran out: its worker died, or gave the unit back. After an outage, or so long a time without ticks that
--    it must have been one, the leases of units that run have run out too: their workers get one lease's time to renew
--    them.
local ticked = tonumber(redis.call('HGET', P .. 'watermark', '#ticked') or at)
if ARGV[5] == '1' or at - ticked > tonumber(ARGV[4]) then
  redis.call('HSET', P .. 'watermark', '#patience', at + tonumber(ARGV[4]))
end
redis.call('HSET', P .. 'watermark', '#ticked', at)
local patient = at < tonumber(redis.call('HGET', P .. 'watermark', '#patience') or '0')
for _, m in ipairs(patient and {} or redis.call('ZRANGEBYSCORE', P .. 'leases', '-inf', at, 'LIMIT', 0, cap)) do
  local t, j, s, unit = parts(m)
  redis.call('ZREM', P .. 'leases', m)
  redis.call('HDEL', P .. 'owners', m, m .. '#')
  local key = stage_key(t, j, s)
  if stage_open(t, j, s) and redis.call('HEXISTS', key .. ':done', unit) == 0 then
    local id = redis.call('HGET', key .. ':units', unit)
    if id then again('lease', t, j, s, id) end
  end
end

-- 3. Published long ago, not started, and either later ones were started or the queue is empty: lost on the way.
--    Each further try waits twice as long.
for _, m in ipairs(redis.call('ZRANGEBYSCORE', P .. 'sent', '-inf', at - lost_age, 'LIMIT', 0, 5000)) do
  if #out / 4 >= cap then break end
  local t, j, s, id = parts(m)
  local key = stage_key(t, j, s)
  if not stage_open(t, j, s) then
    redis.call('ZREM', P .. 'sent', m)
  elseif not seen[m] then
    local stamp = tonumber(redis.call('ZSCORE', P .. 'sent', m))
    local tries = tonumber(redis.call('HGET', P .. 'republished', m) or '0')
    local queue = redis.call('HGET', key .. ':queues', id)
    local mark = tonumber(redis.call('HGET', P .. 'watermark', queue) or '0')
    local gone = redis.call('LLEN', queue) == 0 or mark > stamp + lost_age
    if gone and at - stamp > lost_age * math.pow(2, math.min(tries, 6)) then
      local body = redis.call('HGET', key .. ':messages', id)
      local waiting = false
      if body then
        for _, unit in ipairs(cjson.decode(body).units) do
          if redis.call('HEXISTS', key .. ':done', unit.id) == 0
            and not redis.call('ZSCORE', P .. 'leases', member(t, j, s, unit.id)) then waiting = true end
        end
      end
      if waiting then again('lost', t, j, s, id) end
    end
  end
end
return out
