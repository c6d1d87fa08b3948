-- Open a stage of one unit. ARGV: tenant, job, spec (JSON)
local out = {}
if not is_open(job_state(ARGV[1], ARGV[2])) then return {'gone'} end
open_step(ARGV[1], ARGV[2], cjson.decode(ARGV[3]), out)
return {'ok', unpack(out)}
