-- Reads state keys at one moment. It is no transaction, since a full memory refuses what is queued in one, even reads.
--
-- KEYS     the keys
-- Returns  for each key its type, its content if it is a string, and its time to live in ms: -1 for forever

local call = redis.call
local held = {}
for i, key in ipairs(KEYS) do
  local kind = call('TYPE', key).ok
  held[i] = {kind, kind == 'string' and call('GET', key), call('PTTL', key)}
end
return held
