-- A unit could not be worked on through no fault of its own (or shall be tried again later): its lease ends at
-- `until`, when the reconciler publishes it again.
-- ARGV: tenant, job, stage, unit, token, delay (ms), refund (0/1), why, whether its process died, begun or not (0/1)
local t, j, s, unit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local m = member(t, j, s, unit)
local attempts = P .. 'attempts:' .. t .. ':' .. j
local owner = redis.call('HGET', P .. 'owners', m)
if owner ~= ARGV[5] then
  -- Nobody holds it and its message was never begun: it died in between. That counts, or it might die so for ever.
  local key = stage_key(t, j, s)
  local id = redis.call('HGET', key .. ':units', unit)
  if owner or ARGV[9] ~= '1' or not id or redis.call('HEXISTS', key .. ':done', unit) == 1
    or not redis.call('ZSCORE', P .. 'sent', member(t, j, s, id)) then return 0 end
  redis.call('HINCRBY', attempts, s .. '|' .. unit, 1)
end
redis.call('ZADD', P .. 'leases', now() + tonumber(ARGV[6]), m)
redis.call('HSET', P .. 'owners', m, '')
if ARGV[7] == '1' then redis.call('HINCRBY', attempts, s .. '|' .. unit, -1) end
if ARGV[8] ~= '' then redis.call('HSET', attempts, 'why|' .. s .. '|' .. unit, ARGV[8]) end
return 1
