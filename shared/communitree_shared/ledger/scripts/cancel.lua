-- One caller leaves; the job stops when none is left. ARGV: tenant, job
-- Returns 'detached' (others wait), 'last' (the caller ends the job with finish), 'ended' or 'gone'.
local t, j = ARGV[1], ARGV[2]
local state = job_state(t, j)
if not state then return 'gone' end
if not is_open(state) then return 'ended' end
if redis.call('HINCRBY', job_key(t, j), 'callers', -1) > 0 then return 'detached' end
return 'last'
