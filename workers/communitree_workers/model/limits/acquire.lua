-- One step of the limits on one (endpoint, model, key): settle what has ended, then grant what may start now.
--
-- KEYS: 1 state (hash)  2 calls in flight by process (hash)  3 processes alive (zset: until when)
--       4 tenants by virtual time (zset)  5 who asked lately (zset: when)
-- ARGV[1]: JSON {p: process, inflight, delta, ok, cool, rpm, tpm, conc, lease, ttl, slack, most, keep,
--                flows: [[tenant, job, n, [tokens of the first calls]], ...]}
-- Returns {wait in ms, processes alive, 1 while a 429 still holds calls back, index of the flow of each grant, ...}; flows are numbered from 0.
--
-- The server's clock counts. A minute is spread evenly (GCRA): "rtat" and "ttat" are the times at which all requests and
-- tokens granted so far will have been paid for; a call may start when that time is less than `slack` away. A call larger
-- than what is left starts and leaves a debt, so no size can wait for ever.
local a = cjson.decode(ARGV[1])
local t = redis.call('TIME')
local now = t[1] * 1000 + t[2] / 1000
local s = {}
local raw = redis.call('HMGET', KEYS[1], 'rtat', 'ttat', 'cool', 'adapt', 'cut', 'vt', 'last')
for i, name in ipairs({'rtat', 'ttat', 'cool', 'adapt', 'cut', 'vt', 'last'}) do s[name] = tonumber(raw[i]) or 0 end

-- Each process states its own calls in flight; those of a process that fell silent come back when its lease ends.
redis.call('HSET', KEYS[2], a.p, a.inflight)
redis.call('ZADD', KEYS[3], now + a.lease, a.p)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)) do
  redis.call('ZREM', KEYS[3], gone)
  redis.call('HDEL', KEYS[2], gone)
end
local inflight = 0
for _, n in ipairs(redis.call('HVALS', KEYS[2])) do inflight = inflight + tonumber(n) end

if a.tpm > 0 then s.ttat = s.ttat + a.delta * 60000 / a.tpm end

-- A 429 stops everybody, and halves the calls in flight once a second at most; success lets them grow by one a round.
if a.cool > 0 then
  s.cool = math.max(s.cool, now + a.cool)
  if now - s.cut > 1000 then
    s.adapt = math.max(1, math.floor((s.adapt > 0 and math.min(s.adapt, inflight + 1) or inflight + 1) / 2))
    s.cut = now
  end
elseif s.adapt > 0 and a.ok > 0 then
  s.adapt = s.adapt + a.ok / s.adapt
  if s.adapt > 4000 or now - s.cut > 600000 then s.adapt = 0 end
end
local room = a.conc > 0 and a.conc or math.huge
if s.adapt > 0 then room = math.min(room, math.floor(s.adapt)) end

-- In the place of a job: all bulk calls of a tenant (state.py).
local BULK, BULK_COST = 'bulk', 4

-- Turns: a tenant's and a job's virtual time is the share of the limits it has been granted; the least served goes next.
local function jobs_key(tenant) return KEYS[4] .. ':' .. tenant end
local function tag(key, name, floor) return math.max(tonumber(redis.call('ZSCORE', key, name)) or floor, floor) end
local bounded = a.rpm > 0 or a.tpm > 0 or room < math.huge
local flows = {}
local floors = {}
for i, f in ipairs(a.flows) do
  local flow = {index = i - 1, tenant = f[1], job = f[2], n = f[3], sizes = f[4], used = 0}
  if bounded then
    local jk = jobs_key(flow.tenant)
    if floors[flow.tenant] == nil then floors[flow.tenant] = tonumber(redis.call('HGET', KEYS[1], 'v:' .. flow.tenant)) or 0 end
    flow.tt = tag(KEYS[4], flow.tenant, s.vt)
    flow.jt = tag(jk, flow.job, floors[flow.tenant])
    redis.call('ZADD', KEYS[4], flow.tt, flow.tenant)
    redis.call('ZADD', jk, flow.jt, flow.job)
    redis.call('PEXPIRE', jk, a.ttl)
    redis.call('ZADD', KEYS[5], now, 't:' .. flow.tenant, now, 'j:' .. flow.tenant .. '/' .. flow.job)
  end
  flows[i] = flow
end

-- The least served of those who asked lately, whichever process they ask from.
local function least(key, prefix, floor)
  for _ = 1, 64 do
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if #first == 0 then return floor end
    local seen = tonumber(redis.call('ZSCORE', KEYS[5], prefix .. first[1]))
    if seen and now - seen < a.keep then return math.max(tonumber(first[2]), floor) end
    redis.call('ZREM', key, first[1])
    redis.call('ZREM', KEYS[5], prefix .. first[1])
  end
  return floor
end

local out = {0, redis.call('ZCARD', KEYS[3]), s.adapt > 0 and 1 or 0}
local tenants = {}
while #out - 3 < a.most do
  local best = nil
  for _, f in ipairs(flows) do
    if f.n > 0 then
      if not bounded then best = f break end
      local ft = tenants[f.tenant] or f.tt
      if best == nil then best = f else
        local bt = tenants[best.tenant] or best.tt
        if ft < bt or (ft == bt and f.tenant == best.tenant and f.jt < best.jt) then best = f end
      end
    end
  end
  if best == nil then break end
  if now < s.cool then out[1] = s.cool - now break end
  if inflight >= room then out[1] = 50 break end
  if a.rpm > 0 and s.rtat - now > a.slack then out[1] = s.rtat - now - a.slack break end
  if a.tpm > 0 and s.ttat - now > a.slack then out[1] = s.ttat - now - a.slack break end
  local size = best.sizes[math.min(best.used + 1, #best.sizes)]
  if bounded then
    local cost = 0
    if a.rpm > 0 then cost = 1 / a.rpm end
    if a.tpm > 0 then cost = math.max(cost, size / a.tpm) end
    if room < math.huge then cost = math.max(cost, 1 / room) end
    local bt = tenants[best.tenant] or best.tt
    local behind = least(KEYS[4], 't:', s.vt) + 2 * cost < bt
      or least(jobs_key(best.tenant), 'j:' .. best.tenant .. '/', floors[best.tenant]) + 2 * cost < best.jt
    -- Whoever is behind asks again in a moment; if nobody takes the turn, it is not left unused.
    if behind and now - s.last < 60 then out[1] = 20 break end
    s.vt = math.max(s.vt, math.min(bt, least(KEYS[4], 't:', s.vt)))
    floors[best.tenant] = math.max(floors[best.tenant],
      math.min(best.jt, least(jobs_key(best.tenant), 'j:' .. best.tenant .. '/', floors[best.tenant])))
    tenants[best.tenant] = bt + cost
    best.jt = best.jt + (best.job == BULK and BULK_COST or 1) * cost
    redis.call('ZADD', KEYS[4], bt + cost, best.tenant)
    redis.call('ZADD', jobs_key(best.tenant), best.jt, best.job)
    redis.call('HSET', KEYS[1], 'v:' .. best.tenant, tostring(floors[best.tenant]))
  end
  if a.rpm > 0 then s.rtat = math.max(s.rtat, now) + 60000 / a.rpm end
  if a.tpm > 0 then s.ttat = math.max(s.ttat, now) + size * 60000 / a.tpm end
  s.last = now
  best.n = best.n - 1
  best.used = best.used + 1
  inflight = inflight + 1
  a.inflight = a.inflight + 1
  out[#out + 1] = best.index
end

redis.call('HSET', KEYS[2], a.p, a.inflight)
local function text(x) return string.format('%.6f', x) end
redis.call('HSET', KEYS[1], 'rtat', text(s.rtat), 'ttat', text(s.ttat), 'cool', text(s.cool), 'adapt', text(s.adapt),
  'cut', text(s.cut), 'vt', string.format('%.12g', s.vt), 'last', text(s.last))
for i = 1, 5 do redis.call('PEXPIRE', KEYS[i], a.ttl) end
out[1] = math.ceil(out[1])
return out
