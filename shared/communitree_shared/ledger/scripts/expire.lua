-- End all units of a stage that have not ended. ARGV: tenant, job, stage, cause
local t, j, s = ARGV[1], ARGV[2], ARGV[3]
local out = {}
if not is_open(job_state(t, j)) then return {'gone'} end
local key = stage_key(t, j, s)
if redis.call('HGET', key, 'state') ~= 'open' then return {'closed'} end
redis.call('DEL', key .. ':pending')
local units = redis.call('HKEYS', key .. ':units')
table.sort(units)
local outcome = cjson.encode({ok = false, cause = ARGV[4]})
for _, unit in ipairs(units) do
  if redis.call('HEXISTS', key .. ':done', unit) == 0 then
    arrive(t, j, s, unit, false, outcome, {'cause', ARGV[4]}, out)
  end
end
return {'ok', unpack(out)}
