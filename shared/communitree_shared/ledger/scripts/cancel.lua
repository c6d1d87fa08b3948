-- One caller leaves; the job ends when none is left. A call counts once, however often it is made.
-- ARGV: tenant, job, call (what names this call), ttl (ms), reason
-- Returns {'detached' (others wait) | 'cancelled' | 'ended' | 'gone', outbox triples of others that may go now}
local t, j = ARGV[1], ARGV[2]
local state = job_state(t, j)
if not state then return {'gone'} end
if not is_open(state) then return {'ended'} end
if left_by(t, j, ARGV[3]) > 0 then return {'detached'} end
local out = {}
end_job(t, j, 'cancelled', {}, tonumber(ARGV[4]), ARGV[5], out)
return {'cancelled', unpack(out)}
