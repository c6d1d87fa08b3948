-- ARGV: tenant, job, type, fields (JSON list of strings)
if redis.call('EXISTS', job_key(ARGV[1], ARGV[2])) == 1 then event(ARGV[1], ARGV[2], ARGV[3], cjson.decode(ARGV[4])) end
return 1
