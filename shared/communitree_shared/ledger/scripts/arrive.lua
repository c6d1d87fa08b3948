-- ARGV: tenant, job, stage, unit, ok (0/1), outcome (JSON), event fields (JSON list of strings)
-- Returns {'new' | 'duplicate' | 'closed' | 'gone', outbox triples …}
local out = {}
local t, j = ARGV[1], ARGV[2]
if not is_open(job_state(t, j)) then return {'gone'} end
local status = arrive(t, j, ARGV[3], ARGV[4], ARGV[5] == '1', ARGV[6], cjson.decode(ARGV[7]), out)
return {status, unpack(out)}
