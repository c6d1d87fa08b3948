-- A job ends once. ARGV: tenant, job, state, summary (JSON object of strings), ttl (ms), reason for the event or '',
--       result (JSON) or '': kept for a minute, so that who waits for it need not ask the object store
-- Returns {'ok' | 'already' | 'gone', outbox triples of others that may go now}
local t, j, state = ARGV[1], ARGV[2], ARGV[3]
local before = job_state(t, j)
if not before then return {'gone'} end
if not is_open(before) then return {'already'} end
local out = {}
if ARGV[7] ~= '' then redis.call('SET', P .. 'result:' .. t .. ':' .. j, ARGV[7], 'PX', 60000) end
end_job(t, j, state, cjson.decode(ARGV[4]), tonumber(ARGV[5]), ARGV[6], out)
return {'ok', unpack(out)}
