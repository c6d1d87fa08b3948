-- End the units of a stage that have not ended, so many a call: a long script holds up everybody.
-- ARGV: tenant, job, stage, cause, cursor ('0' first), count
-- Returns {'ok' | 'more' | 'closed' | 'gone', next cursor, outbox triples …}. Between two calls nothing more is
-- released, and what has arrived stays so; who starts again from '0' passes over it.
local t, j, s = ARGV[1], ARGV[2], ARGV[3]
local out = {}
if not is_open(job_state(t, j)) then return {'gone', '0'} end
local key = stage_key(t, j, s)
if redis.call('HGET', key, 'state') ~= 'open' then return {'closed', '0'} end
redis.call('HSET', key, 'halted', 1)
redis.call('UNLINK', key .. ':pending')
local outcome = cjson.encode({ok = false, cause = ARGV[4]})
local found = redis.call('HSCAN', key .. ':units', ARGV[5], 'COUNT', ARGV[6])
local ends = {}
for i = 1, #found[2], 2 do
  ends[#ends + 1] = {id = found[2][i], ok = false, outcome = outcome, fields = {'cause', ARGV[4]}}
end
arrive(t, j, s, ends, out)
return {found[1] == '0' and 'ok' or 'more', found[1], unpack(out)}
