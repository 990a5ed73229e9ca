-- Replaces the progress of an old shard.
--
-- KEYS[1]  progress of the shard
-- ARGV     the fields that it has from then on, and their values

redis.call('DEL', KEYS[1]) -- a full memory never refuses it, nor a write after it: deleting the old keys frees it
return redis.call('HSET', KEYS[1], unpack(ARGV))
