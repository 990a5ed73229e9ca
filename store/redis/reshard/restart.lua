-- Deletes the progress of a new shard that is not complete, so that it is emptied and begins anew. The token of the process
-- that last took it stays.
--
-- KEYS[1]  progress of the shard
-- ARGV     the number of shards that this is one of
-- Returns  1, or 0 if the shard is complete, or is being copied, or others took over from it

local found = redis.call('HMGET', KEYS[1], 'frozen', 'copying', 'shards')
if not found[1] or found[2] or found[3] and found[3] ~= ARGV[1] then return 0 end
local token = redis.call('HGET', KEYS[1], 'resharder')
redis.call('DEL', KEYS[1])
if token then redis.call('HSET', KEYS[1], 'resharder', token) end
return 1
