-- ARGV: tenant, job, stage, then of each unit that has ended: its id, ok (0/1), outcome (JSON), event fields (JSON list)
-- Returns {n, 'new' | 'duplicate' | 'closed' | 'gone' of each of the n units, outbox triples …}
local t, j = ARGV[1], ARGV[2]
local out, ends, reply = {}, {}, {(#ARGV - 3) / 4}
for i = 4, #ARGV, 4 do
  ends[#ends + 1] = {id = ARGV[i], ok = ARGV[i + 1] == '1', outcome = ARGV[i + 2], fields = cjson.decode(ARGV[i + 3])}
end
local open = is_open(job_state(t, j))
local statuses = open and arrive(t, j, ARGV[3], ends, out) or {}
for i = 1, #ends do reply[#reply + 1] = statuses[i] or 'gone' end
for _, value in ipairs(out) do reply[#reply + 1] = value end
return reply
