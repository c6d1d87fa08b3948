-- A request of the stream gets its one outcome, and where it was given another's job, that job's end: now, if it has
-- ended, else when it ends. ARGV: tenant, entry id, fields of the outcome (JSON list of strings), that job or '', its
-- state where the ledger knows it no longer, the request's correlation id
local stream = P .. 'requests:' .. ARGV[1]
if redis.call('XACK', stream, 'intake', ARGV[2]) == 0 then return 0 end
redis.call('XDEL', stream, ARGV[2])
tell(P .. 'results:' .. ARGV[1], cjson.decode(ARGV[3]))
local j, mine = ARGV[4], ARGV[6]
if j == '' then return 1 end
local record = redis.call('HMGET', job_key(ARGV[1], j), 'state', 'correlation_id')
if not is_open(record[1]) then
  tell_end(ARGV[1], j, record[1] or ARGV[5], mine)
elseif mine ~= '' and mine ~= record[2] then
  redis.call('SADD', P .. 'callers:' .. ARGV[1] .. ':' .. j, 'told|' .. mine)
end
return 1
