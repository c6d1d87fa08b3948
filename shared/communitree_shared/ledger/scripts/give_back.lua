-- A unit could not be worked on through no fault of its own (or shall be tried again later): its lease ends at
-- `until`, when the reconciler publishes it again. ARGV: tenant, job, stage, unit, token, delay (ms), refund (0/1), why
local t, j, s, unit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local m = member(t, j, s, unit)
if redis.call('HGET', P .. 'owners', m) ~= ARGV[5] then return 0 end
redis.call('ZADD', P .. 'leases', now() + tonumber(ARGV[6]), m)
redis.call('HSET', P .. 'owners', m, '')
local attempts = P .. 'attempts:' .. t .. ':' .. j
if ARGV[7] == '1' then redis.call('HINCRBY', attempts, s .. '|' .. unit, -1) end
if ARGV[8] ~= '' then redis.call('HSET', attempts, 'why|' .. s .. '|' .. unit, ARGV[8]) end
return 1
