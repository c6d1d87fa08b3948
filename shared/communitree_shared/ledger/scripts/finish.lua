-- A job ends once. ARGV: tenant, job, state, summary (JSON object of strings), ttl (ms), reason for the event or ''
-- Returns {'ok' | 'already' | 'gone', outbox triples of others that may go now}
local t, j, state = ARGV[1], ARGV[2], ARGV[3]
local before = job_state(t, j)
if not before then return {'gone'} end
if not is_open(before) then return {'already'} end
local fields = {'state', state, 'ended', now()}
for k, v in pairs(cjson.decode(ARGV[4])) do fields[#fields + 1] = k; fields[#fields + 1] = v end
redis.call('HSET', job_key(t, j), unpack(fields))
if state == 'answered' or state == 'partial' or state == 'no_data' then
  if redis.call('HGET', job_key(t, j), 'kind') == 'query' then event(t, j, 'reduce.committed', {'status', state}) end
end
event(t, j, 'job.ended', {'status', state, 'reason', ARGV[6]})
local record = redis.call('HMGET', job_key(t, j), 'kind', 'corpus', 'correlation_id')
redis.call('XADD', P .. 'results:' .. t, 'MAXLEN', '~', 10000, '*', 'job', j, 'status', state,
  'kind', record[1] or '', 'corpus', record[2] or '', 'correlation_id', record[3] or '')
redis.call('ZREM', P .. 'jobs:' .. t .. ':open', j)
local out = {}
sweep(t, j, tonumber(ARGV[5]), out)
-- A look's keys live for minutes only: its end says nothing about the age of the tenant's other jobs.
if record[1] == 'look' then
  redis.call('ZREM', P .. 'jobs:' .. t, j)
else
  redis.call('ZREMRANGEBYSCORE', P .. 'jobs:' .. t, '-inf', now() - tonumber(ARGV[5]))
end
if state == 'cancelled' then redis.call('PUBLISH', P .. 'cancelled', t .. '|' .. j) end
return {'ok', unpack(out)}
