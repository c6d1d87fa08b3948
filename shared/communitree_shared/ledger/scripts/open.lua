-- Seal a stage: its whole unit set is known before the first of its messages leaves.
-- ARGV: tenant, job, spec (JSON without messages), staging key or ''; then id, queue, units (JSON list), body …
-- With a staging key the messages were put there before (a list of the same four strings), for large stages.
local t, j = ARGV[1], ARGV[2]
local spec = cjson.decode(ARGV[3])
local staging = ARGV[4]
local out = {}
if not is_open(job_state(t, j)) then
  if staging ~= '' then redis.call('DEL', staging) end
  return {'gone'}
end
if redis.call('EXISTS', stage_key(t, j, spec.stage)) == 1 then
  if staging ~= '' then redis.call('DEL', staging) end
  return {'exists'}
end
create(t, j, spec)
local function add(id, queue, units, body) add_message(t, j, spec.stage, id, queue, cjson.decode(units), body) end
for i = 5, #ARGV, 4 do add(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]) end
if staging ~= '' then
  local length = redis.call('LLEN', staging)
  for start = 0, length - 1, 4000 do
    local part = redis.call('LRANGE', staging, start, start + 3999)
    for i = 1, #part, 4 do add(part[i], part[i + 1], part[i + 2], part[i + 3]) end
  end
  redis.call('DEL', staging)
end
if tonumber(spec.total) == 0 then close(t, j, spec.stage, out) else release(t, j, spec.stage, out) end
return {'ok', unpack(out)}
