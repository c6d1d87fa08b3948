-- A request of the stream gets its one outcome. ARGV: tenant, entry id, fields of the outcome (JSON list of strings)
local stream = P .. 'requests:' .. ARGV[1]
if redis.call('XACK', stream, 'intake', ARGV[2]) == 0 then return 0 end
redis.call('XDEL', stream, ARGV[2])
redis.call('XADD', P .. 'results:' .. ARGV[1], 'MAXLEN', '~', 10000, '*', unpack(cjson.decode(ARGV[3])))
return 1
