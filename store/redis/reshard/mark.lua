-- Sets a field of the progress of a shard.
--
-- KEYS[1]  progress of the shard
-- ARGV     the field, and its value

redis.call('HDEL', KEYS[1], '') -- a full memory refuses no write after one that it never refuses: cancelling frees it
return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
