-- Takes a shard for a process, and sets a field of the shard's progress to its token.
--
-- KEYS[1]  progress of the shard
-- ARGV     token of the process that last took the shard when this one looked, "" for none; its own token; the field
-- Returns  an error if another process has taken the shard since

local call = redis.call
local last = call('HGET', KEYS[1], 'resharder') or ''
if last ~= ARGV[1] and last ~= ARGV[2] then return redis.error_reply('RESHARDING another weir reshard has begun') end
call('HDEL', KEYS[1], '') -- a full memory refuses no write after one that it never refuses: cancelling frees it
return call('HSET', KEYS[1], 'resharder', ARGV[2], ARGV[3], ARGV[2])
