-- Changes the record of a shard, if that on which the change was decided is as it was read; see package progress.
--
-- KEYS[1]  the record
-- ARGV     run of the server as in record.lua
--          name of the record's last change ("" for none) and of this one
--          number of fields that decided, and each with its value ("" if the record lacked it)
--          number of fields to delete, and these
--          number of fields to set to the time of Redis in ms, and these
--          fields to set, each with its value
-- Returns  1, or 0 if the record has changed; or an error RESHARDING or OTHERRUN

local key = KEYS[1]
local refusal = frozen(key) or otherRun(ARGV[1])
if refusal then return refusal end
if (redis.call('HGET', key, 'change') or '') ~= ARGV[2] then return 0 end

local a = 5
local function after(number) return a + tonumber(ARGV[a - 1]) * number end

local last = after(2)
for i = a, last - 1, 2 do
  if (redis.call('HGET', key, ARGV[i]) or '') ~= ARGV[i + 1] then return 0 end
end
a = last + 1
redis.call('HSET', key, 'change', ARGV[3])
last = after(1)
for i = a, last - 1 do redis.call('HDEL', key, ARGV[i]) end
a = last + 1
last = after(1)
local now = clock()
for i = a, last - 1 do redis.call('HSET', key, ARGV[i], now) end
for i = last, #ARGV, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
return 1
