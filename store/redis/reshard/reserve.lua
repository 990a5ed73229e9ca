-- Lets a process copy a new shard that is not complete.
--
-- KEYS[1]  progress of the shard
-- ARGV     token of the process
-- Returns  1, or 0 if the shard is complete

if redis.call('HEXISTS', KEYS[1], 'frozen') == 0 then return 0 end
redis.call('HSET', KEYS[1], 'frozen', ARGV[1])
return 1
