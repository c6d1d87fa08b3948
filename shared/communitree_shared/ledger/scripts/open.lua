-- Seal a stage: its whole unit set is known before the first of its messages leaves.
-- ARGV: tenant, job, spec (JSON without messages), staging key or ''; then id, queue, units (JSON list), body …
-- With a staging key the messages were put there before, in parts (stage.lua), for large stages: they are only renamed.
-- Returns {'ok', outbox triples …} | 'exists' | 'gone' | 'again' (the parts are not all there: stage them again)
local t, j = ARGV[1], ARGV[2]
local spec = cjson.decode(ARGV[3])
local staging = ARGV[4]
local parts = {':pending', ':messages', ':queues', ':left', ':units'}
local out = {}
local function refuse(why)
  if staging ~= '' then
    redis.call('UNLINK', staging .. ':parts')
    for _, part in ipairs(parts) do redis.call('UNLINK', staging .. part) end
  end
  return {why}
end
if not is_open(job_state(t, j)) then return refuse('gone') end
local key = stage_key(t, j, spec.stage)
if redis.call('EXISTS', key) == 1 then return refuse('exists') end
if staging == '' then
  local flat = {}
  for i = 5, #ARGV do flat[#flat + 1] = ARGV[i] end
  if #flat > 0 then add_messages(key, flat) end
else
  if redis.call('HLEN', staging .. ':units') ~= tonumber(spec.total) then return refuse('again') end
  for _, part in ipairs(parts) do
    redis.call('RENAME', staging .. part, key .. part)
    redis.call('PERSIST', key .. part)
  end
  redis.call('UNLINK', staging .. ':parts')
end
create(t, j, spec)
if tonumber(spec.total) == 0 then close(t, j, spec.stage, out) else release(t, j, spec.stage, out) end
return {'ok', unpack(out)}
