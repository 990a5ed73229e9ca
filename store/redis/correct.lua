-- Corrects the number of shards in a layout whose server has gone back in time to before a resharding.
--
-- KEYS[1]  layout of the namespace
-- ARGV     the number that the layout had when it was read, the present one
-- Returns  1, or 0 if the layout has another number by now

local call = redis.call
if call('HGET', KEYS[1], 'shards') ~= ARGV[1] then return 0 end
call('HSET', KEYS[1], 'shards', ARGV[2])
call('HDEL', KEYS[1], 'resharding', 'resharder', 'old_shards', 'switched')
return 1
