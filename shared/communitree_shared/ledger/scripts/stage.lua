-- Put a part of a large stage's messages aside until the stage is sealed (open.lua). A part counts once.
-- ARGV: staging key, number of the part, ttl (ms); then id, queue, units (JSON list), body …
local key, ttl = ARGV[1], tonumber(ARGV[3])
if redis.call('SADD', key .. ':parts', ARGV[2]) == 1 then
  local flat = {}
  for i = 4, #ARGV do flat[#flat + 1] = ARGV[i] end
  add_messages(key, flat)
end
for _, part in ipairs({':parts', ':pending', ':messages', ':queues', ':left', ':units'}) do
  redis.call('PEXPIRE', key .. part, ttl)
end
return 1
