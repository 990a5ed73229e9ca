-- Freezes an old shard at the end of copying it.
--
-- KEYS[1]  progress of the shard
-- ARGV     token of the process that copies
-- Returns  an error if another process copies the shard now

if redis.call('HGET', KEYS[1], 'copying') ~= ARGV[1] then return redis.error_reply('RESHARDING another weir reshard has begun') end
return redis.call('HSET', KEYS[1], 'frozen', ARGV[1])
