-- Keep leases alive. ARGV: token, lease (ms), member …   Returns the members that are no longer ours.
-- The token is a worker's; its children hold leases as `<token>:<process id>`.
local lost = {}
local children = ARGV[1] .. ':'
local till = now() + tonumber(ARGV[2])
for i = 3, #ARGV do
  local owner = redis.call('HGET', P .. 'owners', ARGV[i])
  if owner and (owner == ARGV[1] or string.sub(owner, 1, #children) == children) then
    redis.call('ZADD', P .. 'leases', 'XX', till, ARGV[i])
  else
    lost[#lost + 1] = ARGV[i]
  end
end
return lost
