-- Corrects the number of shards in a layout that was lost, or whose server has gone back in time to before a resharding.
--
-- KEYS[1]  layout of the namespace
-- ARGV     the number that the layout had when it was read, the present one, and the one before that, whose keys may
--          still be there
-- Returns  1, or 0 if the layout has another number by now

local call = redis.call
if call('HGET', KEYS[1], 'shards') ~= ARGV[1] then return 0 end
call('HSET', KEYS[1], 'shards', ARGV[2], 'old_shards', ARGV[3], 'switched', call('TIME')[1])
call('HDEL', KEYS[1], 'resharding', 'resharder')
return 1
