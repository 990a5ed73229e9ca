-- Sets the namespace's number of shards to the new one, and records when, in seconds.
--
-- KEYS[1]  layout of the namespace
-- ARGV     token of the process that copies, the new number, the old one
-- Returns  an error if another process reshards the namespace now

local call = redis.call
if call('HGET', KEYS[1], 'resharder') ~= ARGV[1] then return redis.error_reply('RESHARDING another weir reshard has begun') end
call('HSET', KEYS[1], 'shards', ARGV[2], 'old_shards', ARGV[3], 'switched', call('TIME')[1])
return call('HDEL', KEYS[1], 'resharding', 'resharder')
