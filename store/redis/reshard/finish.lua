-- Gives a new shard its progress, which completes it.
--
-- KEYS[1]  progress of the shard
-- ARGV     token of the process that copies
--          fields of the progress and their values
-- Returns  an error if another process copies the shard now, or it is in use

local call = redis.call
if call('HGET', KEYS[1], 'frozen') ~= ARGV[1] then return redis.error_reply('RESHARDING another weir reshard has begun') end
-- Redis never refuses DEL for lack of memory, and after it no later write of the script.
call('DEL', KEYS[1])
local most = 1000 -- values that unpack can pass at once
for first = 2, #ARGV, most do
  call('HSET', KEYS[1], unpack(ARGV, first, math.min(first + most - 1, #ARGV)))
end
return (#ARGV - 1) / 2
