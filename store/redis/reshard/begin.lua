-- Notes in the layout of a namespace that a process reshards it, unless another has switched it over. A process that
-- was resharding it can no longer write.
--
-- KEYS[1]  layout of the namespace
-- ARGV     token of the process, the new number of shards, the current one
-- Returns  an error if the namespace has another number of shards

local call = redis.call
if call('HGET', KEYS[1], 'shards') ~= ARGV[3] or call('HEXISTS', KEYS[1], 'old_shards') == 1 then
  return redis.error_reply('RESHARDING another weir reshard has finished')
end
call('HDEL', KEYS[1], '') -- a full memory refuses no write after one that it never refuses: cancelling frees it
return call('HSET', KEYS[1], 'resharding', ARGV[2], 'resharder', ARGV[1])
