-- Stores what a processor publishes, and drops what others have not renewed in time.
--
-- KEYS[1]  what processors publish: HASH processor -> "<when, in ms>:<what>"
-- ARGV     processor, what, for how many ms to keep it

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%d:', now) .. ARGV[2])
redis.call('EXPIRE', KEYS[1], math.ceil(ARGV[3] / 1000))
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local at = tonumber(string.match(all[i + 1], '^%d+'))
  if not at or now - at > tonumber(ARGV[3]) then redis.call('HDEL', KEYS[1], all[i]) end
end
return 1
