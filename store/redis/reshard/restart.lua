-- Deletes the progress of a new shard that is not complete, so that it is emptied and begins anew.
--
-- KEYS[1]  progress of the shard
-- Returns  1, or 0 if the shard is complete, or is being copied, or others took over from it

local found = redis.call('HMGET', KEYS[1], 'frozen', 'copying', 'shards')
if not found[1] or found[2] or found[3] then return 0 end
return redis.call('DEL', KEYS[1])
