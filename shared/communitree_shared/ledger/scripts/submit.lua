-- ARGV: tenant, job, record (JSON object of strings), step (JSON), corpus lock key or '', in-flight key or '',
--       deadline (ms, 0: none), then the limits: open jobs of a tenant, of all, waiting units of a tenant, of all;
--       the request (JSON) or ''
-- A caller is named by the job it asked for: the same call made again counts once.
-- Returns {status, …}: 'ok' + outbox triples | 'exists' job | 'busy' job | 'shared' job | 'full' what is full
local t, j = ARGV[1], ARGV[2]
local lock, flight = ARGV[5], ARGV[6]
local out = {}
if redis.call('EXISTS', job_key(t, j)) == 1 then return {'exists', j} end
local record, at = cjson.decode(ARGV[3]), now()

-- An equal question in flight suits who has at most twice its time left, and who is in no more of a hurry.
local function suits(other)
  local v = redis.call('HMGET', job_key(t, other), 'deadline', 'lane')
  if v[2] == 'b' and record.lane ~= 'b' then return false end
  local its, mine = tonumber(v[1] or ''), tonumber(record.deadline or '')
  return not its or not mine or 2 * (its * 1000 - at) >= mine * 1000 - at
end

if flight ~= '' then
  local other = redis.call('GET', flight)
  if other and is_open(job_state(t, other)) and suits(other) then
    joined_by(t, other, j)
    return {'shared', other}
  end
end
if lock ~= '' then
  local other = redis.call('GET', lock)
  if other and is_open(job_state(t, other)) then return {'busy', other} end
end
local function full(n, limit, what)
  if n >= tonumber(limit) then return {'full', n .. ' ' .. what .. ', the limit is ' .. limit} end
end
local waiting = redis.call('HMGET', P .. 'waiting', t, '*')
local refused = full(redis.call('ZCARD', P .. 'jobs:' .. t .. ':open'), ARGV[8], 'jobs of this tenant are open')
  or full(redis.call('ZCARD', P .. 'open'), ARGV[9], 'jobs are open')
  or full(tonumber(waiting[1] or '0'), ARGV[10], 'units of this tenant wait')
  or full(tonumber(waiting[2] or '0'), ARGV[11], 'units wait')
if refused then return refused end
local flat = {}
for k, v in pairs(record) do flat[#flat + 1] = k; flat[#flat + 1] = v end
redis.call('HSET', job_key(t, j), 'state', 'queued', 'created', at, 'callers', 0, 'seq', 0,
  'lock', lock, 'in_flight', flight, unpack(flat))
joined_by(t, j, j)
redis.call('ZADD', P .. 'jobs:' .. t, at, j)
redis.call('ZADD', P .. 'jobs:' .. t .. ':open', at, j)
redis.call('ZADD', P .. 'open', at, t .. '|' .. j)
if tonumber(ARGV[7]) > 0 then redis.call('ZADD', P .. 'deadlines', ARGV[7], t .. '|' .. j) end
if lock ~= '' then redis.call('SET', lock, j) end
if flight ~= '' then redis.call('SET', flight, j) end
if ARGV[12] ~= '' then redis.call('SET', P .. 'request:' .. t .. ':' .. j, ARGV[12]) end
event(t, j, 'job.submitted', {'kind', record.kind, 'corpus', record.corpus})
open_step(t, j, cjson.decode(ARGV[4]), out)
return {'ok', unpack(out)}
