-- ARGV: tenant, job, stage, then of each unit that has ended: its id, ok (0/1), outcome (JSON), event fields (JSON list)
-- Returns {n, 'new' | 'duplicate' | 'closed' | 'gone' of each of the n units, outbox triples …}
local out = {}
local t, j = ARGV[1], ARGV[2]
local reply = {(#ARGV - 3) / 4}
for i = 4, #ARGV, 4 do
  local status = 'gone'
  if is_open(job_state(t, j)) then
    status = arrive(t, j, ARGV[3], ARGV[i], ARGV[i + 1] == '1', ARGV[i + 2], cjson.decode(ARGV[i + 3]), out)
  end
  reply[#reply + 1] = status
end
for _, value in ipairs(out) do reply[#reply + 1] = value end
return reply
