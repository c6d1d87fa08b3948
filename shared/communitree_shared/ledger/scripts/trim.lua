-- Cut off the beginning of a stream, and tell in it what nobody will read any more.
-- ARGV: stream, its first entry as it was seen, the first id that stays, fields of the entry that tells of the loss
--       (JSON list of strings; empty: nothing is lost)
-- Returns how many entries went; -1: the stream has changed meanwhile (or this is the second call), and nothing was done
local first = redis.call('XRANGE', ARGV[1], '-', '+', 'COUNT', 1)[1]
if not first or first[1] ~= ARGV[2] then return -1 end
local gone = redis.call('XTRIM', ARGV[1], 'MINID', ARGV[3])
local told = cjson.decode(ARGV[4])
if #told > 0 then redis.call('XADD', ARGV[1], '*', unpack(told)) end
return gone
