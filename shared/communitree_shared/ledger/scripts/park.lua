-- Keep a message for a newer worker, once and not without end. ARGV: queue, entry (JSON), most, ttl (ms)
-- Returns 'parked' | 'there' (it waits already) | 'full'
local key = P .. 'parked:' .. ARGV[1]
if redis.call('LPOS', key, ARGV[2]) then return 'there' end
if redis.call('LLEN', key) >= tonumber(ARGV[3]) then return 'full' end
redis.call('LPUSH', key, ARGV[2])
redis.call('PEXPIRE', key, ARGV[4])
return 'parked'
