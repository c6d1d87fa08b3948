-- Before work: is it wanted, is it done, does another hold it, was it tried too often?
-- ARGV: tenant, job, stage, message, token, lease (ms), attempts allowed, nonce of this call,
--       whether the job's request is wanted (0/1), whether it comes from a worker and not its queue (0/1), unit …
-- A call whose reply was lost may be repeated: the nonce shows that the lease was given to it, and nothing is counted.
-- Returns {job state, deadline, request or '', n, then per unit: verdict, attempt; then outbox triples}
-- verdict: go | done | leased | poison | gone
local t, j, s = ARGV[1], ARGV[2], ARGV[3]
local token, lease, allowed = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local state = job_state(t, j)
local request = ARGV[9] == '1' and redis.call('GET', P .. 'request:' .. t .. ':' .. j) or ''
local reply = {state or '', redis.call('HGET', job_key(t, j), 'deadline') or '', request, #ARGV - 10}
local out = {}
local key = stage_key(t, j, s)
local at = now()
local m = member(t, j, s, ARGV[4])
local queue = redis.call('HGET', key .. ':queues', ARGV[4])
if queue then
  -- The watermark: queues are first in, first out, so what was published clearly earlier and never started is lost.
  local sent = tonumber(redis.call('ZSCORE', P .. 'sent', m) or '0')
  if ARGV[10] == '0' and sent > tonumber(redis.call('HGET', P .. 'watermark', queue) or '0') then
    redis.call('HSET', P .. 'watermark', queue, sent)
  end
  -- It has come through. From here on its units' leases stand for it.
  if redis.call('ZREM', P .. 'sent', m) == 0 and tonumber(redis.call('HGET', key .. ':left', ARGV[4])) > 0
    and redis.call('HGET', key, 'state') == 'open' then
    -- It comes a second time, or from before Redis lost writes and has not been released: the end has to find it.
    redis.call('SADD', key .. ':active', ARGV[4])
  end
  redis.call('ZREM', P .. 'outbox', m)
  if redis.call('ZREM', flight_key(queue), m) == 1 then drain(queue, out) end
end
local wanted = is_open(state) and redis.call('HGET', key, 'state') == 'open'
if wanted and state == 'queued' then
  redis.call('HSET', job_key(t, j), 'state', 'running', 'started', at)
  event(t, j, 'job.started', {})
end
for i = 11, #ARGV do
  local unit = ARGV[i]
  local verdict, attempt = 'gone', 0
  if wanted then
    local m = member(t, j, s, unit)
    local held = redis.call('ZSCORE', P .. 'leases', m)
    if redis.call('HEXISTS', key .. ':done', unit) == 1 then
      verdict = 'done'
    elseif redis.call('HEXISTS', key .. ':units', unit) == 0 then
      verdict = 'gone'
    elseif held and tonumber(held) > at and redis.call('HGET', P .. 'owners', m .. '#') == ARGV[8] then
      verdict = 'go'
      attempt = tonumber(redis.call('HGET', P .. 'attempts:' .. t .. ':' .. j, s .. '|' .. unit))
    elseif held and tonumber(held) > at then
      verdict = 'leased'
    else
      attempt = redis.call('HINCRBY', P .. 'attempts:' .. t .. ':' .. j, s .. '|' .. unit, 1)
      if attempt > allowed then
        verdict = 'poison'
        local why = redis.call('HGET', P .. 'attempts:' .. t .. ':' .. j, 'why|' .. s .. '|' .. unit)
          or 'its worker died each time'
        tell(P .. 'dead:' .. t, {'job', j, 'stage', s, 'unit', unit, 'message', ARGV[4], 'attempts', attempt - 1,
          'why', why, 'body', redis.call('HGET', key .. ':messages', ARGV[4]) or ''})
        local outcome = cjson.encode({ok = false, cause = 'poison', message = why, attempt = attempt})
        local fields = {'cause', 'poison', 'attempt', attempt - 1, 'message', why}
        arrive(t, j, s, {{id = unit, ok = false, outcome = outcome, fields = fields}}, out)
      else
        verdict = 'go'
        redis.call('ZADD', P .. 'leases', at + lease, m)
        redis.call('HSET', P .. 'owners', m, token, m .. '#', ARGV[8])
        if attempt > 1 then event(t, j, 'unit.retried', {'stage', s, 'unit', unit, 'attempt', attempt}) end
      end
    end
  end
  reply[#reply + 1] = verdict
  reply[#reply + 1] = attempt
end
for _, value in ipairs(out) do reply[#reply + 1] = value end
return reply
