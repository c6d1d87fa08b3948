-- ARGV: tenant, job, record (JSON object of strings), step (JSON), corpus lock key or '', in-flight key or '',
--       limit of open jobs, deadline (ms, 0: none)
-- Returns {status, …}: 'ok' + outbox triples | 'busy' job | 'shared' job | 'full' open
local t, j = ARGV[1], ARGV[2]
local lock, flight = ARGV[5], ARGV[6]
local out = {}
if redis.call('EXISTS', job_key(t, j)) == 1 then return {'exists', j} end
if flight ~= '' then
  local other = redis.call('GET', flight)
  if other and is_open(job_state(t, other)) then
    redis.call('HINCRBY', job_key(t, other), 'callers', 1)
    return {'shared', other}
  end
end
if lock ~= '' then
  local other = redis.call('GET', lock)
  if other and is_open(job_state(t, other)) then return {'busy', other} end
end
local open = redis.call('ZCOUNT', P .. 'jobs:' .. t .. ':open', '-inf', '+inf')
if open >= tonumber(ARGV[7]) then return {'full', tostring(open)} end
local record = cjson.decode(ARGV[3])
local flat = {}
for k, v in pairs(record) do flat[#flat + 1] = k; flat[#flat + 1] = v end
local at = now()
redis.call('HSET', job_key(t, j), 'state', 'queued', 'created', at, 'callers', 1, 'seq', 0,
  'lock', lock, 'in_flight', flight, unpack(flat))
redis.call('ZADD', P .. 'jobs:' .. t, at, j)
redis.call('ZADD', P .. 'jobs:' .. t .. ':open', at, j)
redis.call('ZADD', P .. 'open', at, t .. '|' .. j)
if tonumber(ARGV[8]) > 0 then redis.call('ZADD', P .. 'deadlines', ARGV[8], t .. '|' .. j) end
if lock ~= '' then redis.call('SET', lock, j) end
if flight ~= '' then redis.call('SET', flight, j) end
event(t, j, 'job.submitted', {'kind', record.kind, 'corpus', record.corpus})
open_step(t, j, cjson.decode(ARGV[4]), out)
return {'ok', unpack(out)}
