-- Lets a process copy a new shard that is not complete.
--
-- KEYS[1]  progress of the shard
-- ARGV     token of the process, the number of shards that this is one of
-- Returns  1, or 0 if the shard is complete, or is itself copied by now

local found = redis.call('HMGET', KEYS[1], 'frozen', 'copying', 'shards')
if not found[1] or found[2] or found[3] and found[3] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'frozen', ARGV[1])
return 1
