-- Shared by all ledger scripts. Keys mirror rediskeys.py. `t`, `j`, `s` are tenant, job and stage.
-- A member of the global sorted sets is 'tenant|job|stage|id'.
local P = 'communitree:'
-- A job's events beyond this many go, the oldest first: `seq` shows a follower how many (docs/messages.md).
local EVENTS_MAX = 20000

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function job_key(t, j) return P .. 'job:' .. t .. ':' .. j end
local function stage_key(t, j, s) return P .. 'stage:' .. t .. ':' .. j .. ':' .. s end
local function member(t, j, s, id) return t .. '|' .. j .. '|' .. s .. '|' .. id end

local function event(t, j, kind, fields)
  local seq = redis.call('HINCRBY', job_key(t, j), 'seq', 1)
  local args = {P .. 'events:' .. t .. ':' .. j, 'MAXLEN', '~', EVENTS_MAX, '*', 'type', kind, 'seq', seq,
    'at', string.format('%.3f', now() / 1000)}
  for i = 1, #fields, 2 do
    if fields[i + 1] ~= nil and fields[i + 1] ~= false and fields[i + 1] ~= '' then
      args[#args + 1] = fields[i]
      args[#args + 1] = tostring(fields[i + 1])
    end
  end
  redis.call('XADD', unpack(args))
end

-- Append to a stream that others read at their pace. It is not cut here: the reconciler knows who has read what.
local function tell(key, fields)
  redis.call('SADD', P .. 'streams', key)
  redis.call('XADD', key, '*', unpack(fields))
end

-- Whether messages of a stage may still go out: not when it is being expired.
local function flows(t, j, s)
  local v = redis.call('HMGET', stage_key(t, j, s), 'state', 'halted')
  return v[1] == 'open' and not v[2]
end

local function to_outbox(t, j, s, id, at, out)
  local m = member(t, j, s, id)
  redis.call('ZADD', P .. 'outbox', at, m)
  redis.call('ZADD', P .. 'sent', at, m)
  out[#out + 1] = m
  out[#out + 1] = redis.call('HGET', stage_key(t, j, s) .. ':queues', id)
  out[#out + 1] = redis.call('HGET', stage_key(t, j, s) .. ':messages', id)
end

-- Fairness. A released message waits in its tenant's line for its queue; only CAP messages of a queue are in the
-- broker and not yet started, so that whoever comes later waits behind those alone. Tenants are served in turn, and
-- of five messages at least four are interactive where any wait. Each start lets the next message in.
local CAP = 32
local BULK_EVERY = 5

local function ready_key(q, lane, t) return P .. 'ready:' .. q .. ':' .. lane .. ':' .. t end
local function turn_key(q, lane) return P .. 'turn:' .. q .. ':' .. lane end
local function flight_key(q) return P .. 'flight:' .. q end

local function line_up(t, j, s, id)
  local q = redis.call('HGET', stage_key(t, j, s) .. ':queues', id)
  local lane = redis.call('HGET', job_key(t, j), 'lane') or 'i'
  if redis.call('RPUSH', ready_key(q, lane, t), member(t, j, s, id)) == 1 then
    redis.call('RPUSH', turn_key(q, lane), t)
  end
  return q
end

local function next_in_line(q)
  local lane = 'i'
  if redis.call('EXISTS', turn_key(q, 'b')) == 1 then
    if redis.call('HINCRBY', P .. 'lanes', q, 1) % BULK_EVERY == 0 or redis.call('EXISTS', turn_key(q, 'i')) == 0 then
      lane = 'b'
    end
  end
  local t = redis.call('LPOP', turn_key(q, lane))
  if not t then return nil end
  local m = redis.call('LPOP', ready_key(q, lane, t))
  if redis.call('EXISTS', ready_key(q, lane, t)) == 1 then redis.call('RPUSH', turn_key(q, lane), t) end
  return m or ''
end

local function drain(q, out)
  local at = now()
  local free = CAP - redis.call('ZCARD', flight_key(q))
  while free > 0 do
    local m = next_in_line(q)
    if not m then return end
    local t, j, s, id = string.match(m, '^([^|]*)|([^|]*)|([^|]*)|(.*)$')
    if t and flows(t, j, s) then
      redis.call('ZADD', flight_key(q), at, m)
      to_outbox(t, j, s, id, at, out)
      free = free - 1
    end
  end
end

-- Move waiting messages into line while the job's window has room.
local function release(t, j, s, out)
  local key = stage_key(t, j, s)
  local v = redis.call('HMGET', key, 'window', 'released', 'done')
  local window, released, done = tonumber(v[1]), tonumber(v[2]), tonumber(v[3])
  local before = released
  local queues = {}
  while released - done < window do
    local id = redis.call('LPOP', key .. ':pending')
    if not id then break end
    local left = tonumber(redis.call('HGET', key .. ':left', id))
    if left > 0 then -- else its units have arrived already, from work that was begun before Redis lost writes
      released = released + left
      redis.call('SADD', key .. ':active', id)
      queues[line_up(t, j, s, id)] = true
    end
  end
  for q, _ in pairs(queues) do drain(q, out) end
  if released ~= before then redis.call('HSET', key, 'released', released) end
end

local function stage_fields(spec)
  return {'stage', spec.stage, 'level', spec.level, 'kind', spec.kind, 'total', spec.total}
end

-- Create the record of a stage. The caller adds its messages before or after, in the same script or transaction.
local function create(t, j, spec)
  local key = stage_key(t, j, spec.stage)
  local at = now()
  redis.call('HSET', key, 'total', spec.total, 'done', 0, 'failed', 0, 'released', 0, 'state', 'open',
    'window', spec.window, 'critical', spec.critical and 1 or 0, 'opened', at, 'kind', spec.kind,
    'level', spec.level or '', 'next', spec.next and cjson.encode(spec.next) or '')
  redis.call('SADD', P .. 'stages:' .. t .. ':' .. j, spec.stage)
  redis.call('HINCRBY', P .. 'waiting', '*', spec.total)
  redis.call('HINCRBY', P .. 'waiting', t, spec.total)
  redis.call('HSET', job_key(t, j), 'stage', spec.stage)
  if spec.level and spec.kind == 'report' then event(t, j, 'level.started', stage_fields(spec)) end
  if spec.kind == 'reduce' then event(t, j, 'reduce.started', stage_fields(spec)) end
  event(t, j, 'stage.started', stage_fields(spec))
end

-- Commands with many arguments, but not more than Lua's stack holds.
local function many(command, key, args)
  for start = 1, #args, 4000 do
    redis.call(command, key, unpack(args, start, math.min(start + 3999, #args)))
  end
end

-- Put messages under a key: a flat list of id, queue, units (a JSON list), body.
local function add_messages(key, flat)
  local ids, bodies, queues, left, owners = {}, {}, {}, {}, {}
  for i = 1, #flat, 4 do
    local id, units = flat[i], cjson.decode(flat[i + 2])
    ids[#ids + 1] = id
    queues[#queues + 1] = id; queues[#queues + 1] = flat[i + 1]
    bodies[#bodies + 1] = id; bodies[#bodies + 1] = flat[i + 3]
    left[#left + 1] = id; left[#left + 1] = #units
    for _, unit in ipairs(units) do owners[#owners + 1] = unit; owners[#owners + 1] = id end
  end
  many('RPUSH', key .. ':pending', ids)
  many('HSET', key .. ':messages', bodies)
  many('HSET', key .. ':queues', queues)
  many('HSET', key .. ':left', left)
  many('HSET', key .. ':units', owners)
end

-- A stage of one message with one unit: what follows a closed stage.
local function open_step(t, j, spec, out)
  if redis.call('EXISTS', stage_key(t, j, spec.stage)) == 1 then return end
  create(t, j, spec)
  add_messages(stage_key(t, j, spec.stage), {spec.message, spec.queue, cjson.encode({spec.unit}), spec.body})
  release(t, j, spec.stage, out)
end

local function waiting_less(t, n)
  redis.call('HINCRBY', P .. 'waiting', '*', -n)
  if redis.call('HINCRBY', P .. 'waiting', t, -n) == 0 then redis.call('HDEL', P .. 'waiting', t) end
end

-- Who waits for a job: each call that joins or leaves it has a name and counts once. Return how many wait.
local function counted(t, j, name, by)
  if redis.call('SADD', P .. 'callers:' .. t .. ':' .. j, name) == 0 then by = 0 end
  return redis.call('HINCRBY', job_key(t, j), 'callers', by)
end
local function joined_by(t, j, caller) return counted(t, j, 'in|' .. caller, 1) end
local function left_by(t, j, call) return counted(t, j, 'out|' .. call, -1) end

local function job_state(t, j) return redis.call('HGET', job_key(t, j), 'state') end
local function is_open(state) return state == 'queued' or state == 'running' end

-- Take a job's messages out of the global sets, and give its keys a TTL. Only what was released and has not ended can
-- stand in those sets, so this is short however large the stage is.
local function sweep(t, j, ttl_ms, out)
  local freed = {}
  for _, s in ipairs(redis.call('SMEMBERS', P .. 'stages:' .. t .. ':' .. j)) do
    local key = stage_key(t, j, s)
    if redis.call('HGET', key, 'state') == 'open' then
      local counts = redis.call('HMGET', key, 'total', 'done')
      waiting_less(t, tonumber(counts[1]) - tonumber(counts[2]))
      for _, id in ipairs(redis.call('SMEMBERS', key .. ':active')) do
        local m = member(t, j, s, id)
        redis.call('ZREM', P .. 'sent', m)
        redis.call('ZREM', P .. 'outbox', m)
        redis.call('HDEL', P .. 'republished', m)
        local q = redis.call('HGET', key .. ':queues', id)
        redis.call('ZREM', flight_key(q), m)
        freed[q] = true
        for _, unit in ipairs(cjson.decode(redis.call('HGET', key .. ':messages', id)).units) do
          local u = member(t, j, s, unit.id)
          redis.call('ZREM', P .. 'leases', u)
          redis.call('HDEL', P .. 'owners', u, u .. '#')
        end
      end
      redis.call('HSET', key, 'state', 'closed')
    end
    for _, part in ipairs({'', ':done', ':pending', ':messages', ':queues', ':units', ':left', ':active'}) do
      redis.call('PEXPIRE', key .. part, ttl_ms)
    end
  end
  for _, kind in ipairs({'job:', 'stages:', 'attempts:', 'events:', 'callers:'}) do
    redis.call('PEXPIRE', P .. kind .. t .. ':' .. j, ttl_ms)
  end
  redis.call('UNLINK', P .. 'request:' .. t .. ':' .. j, P .. 'plan:' .. t .. ':' .. j)
  redis.call('ZREM', P .. 'open', t .. '|' .. j)
  redis.call('ZREM', P .. 'deadlines', t .. '|' .. j)
  local lock = redis.call('HGET', job_key(t, j), 'lock')
  if lock and lock ~= '' and redis.call('GET', lock) == j then redis.call('DEL', lock) end
  local flight = redis.call('HGET', job_key(t, j), 'in_flight')
  if flight and flight ~= '' and redis.call('GET', flight) == j then redis.call('DEL', flight) end
  for q, _ in pairs(freed) do drain(q, out) end
end

-- What a look found stands in the entry of its end up to so many bytes (contract/looks.py has the same number).
local INLINE = 4096

-- An entry of the tenant's results, with the correlation id of one who asked.
local function tell_end(t, j, state, correlation)
  local record = redis.call('HMGET', job_key(t, j), 'kind', 'corpus', 'op', 'result')
  local fields = {'job', j, 'status', state, 'kind', record[1] or '', 'corpus', record[2] or '',
    'correlation_id', correlation or ''}
  local function add(name, value)
    if value and value ~= '' then fields[#fields + 1] = name; fields[#fields + 1] = value end
  end
  if record[1] == 'look' then
    local found = redis.call('GET', P .. 'result:' .. t .. ':' .. j)
    add('op', record[3])
    add('object', record[4])
    add('result', found and #found <= INLINE and found)
  end
  tell(P .. 'results:' .. t, fields)
end

-- A job ends once: its state, its last event, an entry for the tenant's results; others may go now (`out`).
local function end_job(t, j, state, summary, ttl_ms, reason, out)
  local fields = {'state', state, 'ended', now()}
  if reason and reason ~= '' then fields[#fields + 1] = 'reason'; fields[#fields + 1] = reason end
  for k, v in pairs(summary) do fields[#fields + 1] = k; fields[#fields + 1] = v end
  redis.call('HSET', job_key(t, j), unpack(fields))
  local record = redis.call('HMGET', job_key(t, j), 'kind', 'corpus', 'correlation_id', 'told')
  local told_of = record[1] ~= 'look' or record[4] == '1'
  if record[1] == 'query' and (state == 'answered' or state == 'partial' or state == 'no_data') then
    event(t, j, 'reduce.committed', {'status', state})
  end
  event(t, j, 'job.ended', {'status', state, 'reason', reason})
  local told = P .. 'ended:' .. t .. ':' .. j
  redis.call('XADD', told, '*', 'status', state)
  redis.call('PEXPIRE', told, 60000)
  if told_of then
    tell_end(t, j, state, record[3])
    for _, name in ipairs(redis.call('SMEMBERS', P .. 'callers:' .. t .. ':' .. j)) do
      if name:sub(1, 5) == 'told|' then tell_end(t, j, state, name:sub(6)) end -- see settle.lua
    end
  end
  redis.call('ZREM', P .. 'jobs:' .. t .. ':open', j)
  -- An end that no result tells of stands here alone; the reconciler writes it (see ends.py).
  if not summary.result and told_of then redis.call('ZADD', P .. 'unwritten', now(), t .. '|' .. j) end
  sweep(t, j, ttl_ms, out)
  -- A look's keys live for minutes only: its end says nothing about the age of the tenant's other jobs.
  if record[1] == 'look' then
    redis.call('ZREM', P .. 'jobs:' .. t, j)
  else
    redis.call('ZREMRANGEBYSCORE', P .. 'jobs:' .. t, '-inf', now() - ttl_ms)
  end
  if state == 'cancelled' then redis.call('PUBLISH', P .. 'cancelled', t .. '|' .. j) end
end

-- The last arrival: close once, and put what follows into the outbox in the same step.
local function close(t, j, s, out)
  local key = stage_key(t, j, s)
  local v = redis.call('HMGET', key, 'critical', 'failed', 'next', 'level', 'kind', 'done', 'total')
  redis.call('HSET', key, 'state', 'closed', 'closed', now())
  local fields = {'stage', s, 'level', v[4], 'kind', v[5], 'done', v[6], 'failed', v[2], 'total', v[7]}
  if v[4] ~= '' and v[5] == 'report' then event(t, j, 'level.ended', fields) end
  event(t, j, 'stage.ended', fields)
  if v[5] == 'finish' and tonumber(v[2]) > 0 then
    -- Not even the step that ends a failed job could be done: nothing is left to try.
    end_job(t, j, 'failed', {}, 7 * 24 * 3600 * 1000, 'its end could not be written', out)
    return
  end
  local next_step = v[3]
  if v[1] == '1' and tonumber(v[2]) > 0 then
    next_step = redis.call('HGET', job_key(t, j), 'on_failure') or ''
  end
  if next_step ~= '' then open_step(t, j, cjson.decode(next_step), out) end
end

-- Units have ended: of each its id, whether well, outcome (JSON), event fields. Returns 'new', 'duplicate', 'closed' or
-- 'gone' for each; only 'new' changes anything.
local function arrive(t, j, s, ends, out)
  local key = stage_key(t, j, s)
  local v = redis.call('HMGET', key, 'state', 'level', 'total')
  local replies, leases, owners, messages, fresh, failed = {}, {}, {}, {}, 0, 0
  for i, unit in ipairs(ends) do
    if v[1] ~= 'open' then
      replies[i] = v[1] or 'gone'
    elseif redis.call('HSETNX', key .. ':done', unit.id, unit.outcome) == 0 then
      replies[i] = 'duplicate'
    else
      replies[i] = 'new'
      fresh = fresh + 1
      if not unit.ok then failed = failed + 1 end
      local m = member(t, j, s, unit.id)
      leases[#leases + 1] = m
      owners[#owners + 1] = m; owners[#owners + 1] = m .. '#'
      local id = redis.call('HGET', key .. ':units', unit.id)
      if id then messages[id] = (messages[id] or 0) + 1 end
      local fields = {'stage', s, 'unit', unit.id, 'level', v[2], 'ok', unit.ok and 'true' or 'false'}
      for _, value in ipairs(unit.fields) do fields[#fields + 1] = value end
      event(t, j, 'unit.ended', fields)
    end
  end
  if fresh == 0 then return replies end
  many('ZREM', P .. 'leases', leases)
  many('HDEL', P .. 'owners', owners)
  local done = redis.call('HINCRBY', key, 'done', fresh)
  if failed > 0 then redis.call('HINCRBY', key, 'failed', failed) end
  waiting_less(t, fresh)
  for id, n in pairs(messages) do
    if redis.call('HINCRBY', key .. ':left', id, -n) == 0 then
      local gone = member(t, j, s, id)
      redis.call('SREM', key .. ':active', id)
      redis.call('ZREM', P .. 'sent', gone)
      redis.call('ZREM', P .. 'outbox', gone)
      redis.call('HDEL', P .. 'republished', gone)
      local q = redis.call('HGET', key .. ':queues', id)
      redis.call('ZREM', flight_key(q), gone)
      drain(q, out) -- also when it still stood in line: what is over must not stay there
    end
  end
  if done == tonumber(v[3]) then close(t, j, s, out) else release(t, j, s, out) end
  return replies
end
