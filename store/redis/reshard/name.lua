-- Records in an old shard how many shards took over from it, in case the server of the layout loses the switch.
--
-- KEYS[1]  progress of the shard
-- ARGV     fields of the layout, each with its value
-- Returns  1, or 0 if the shard is not frozen: it has gone back in time

if redis.call('HEXISTS', KEYS[1], 'frozen') == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
