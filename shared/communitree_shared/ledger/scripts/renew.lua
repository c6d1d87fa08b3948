-- Keep leases alive. ARGV: token, lease (ms), member …   Returns the members that are no longer ours.
local lost = {}
local till = now() + tonumber(ARGV[2])
for i = 3, #ARGV do
  if redis.call('HGET', P .. 'owners', ARGV[i]) == ARGV[1] then
    redis.call('ZADD', P .. 'leases', 'XX', till, ARGV[i])
  else
    lost[#lost + 1] = ARGV[i]
  end
end
return lost
