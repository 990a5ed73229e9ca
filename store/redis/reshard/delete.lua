-- Deletes keys of a shard that is not in use.
--
-- KEYS[1]   progress of the shard
-- KEYS[2..] the keys
-- ARGV      what the shard is frozen by: the token of the process, or "resharded"
-- Returns   an error if another process copies the shard now, or it is in use

if redis.call('HGET', KEYS[1], 'frozen') ~= ARGV[1] then return redis.error_reply('RESHARDING another weir reshard has begun') end
return redis.call('UNLINK', unpack(KEYS, 2))
