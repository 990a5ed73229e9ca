-- Replaces the fields of the progress of an old shard.
--
-- KEYS[1]  progress of the shard
-- ARGV     the fields that it has from then on, beside the token of the process that last took it, and their values
--
-- HDEL comes first: a full memory refuses no write after it, and deleting the old keys frees memory. The key is not
-- deleted: it would be missing in a slot that moves, and the script would end.

local call = redis.call
call('HDEL', KEYS[1], '')
call('HSET', KEYS[1], unpack(ARGV))
local stays = {resharder = true}
for i = 1, #ARGV, 2 do stays[ARGV[i]] = true end
local held = call('HGETALL', KEYS[1])
for i = 1, #held, 2 do
  if not stays[held[i]] then call('HDEL', KEYS[1], held[i]) end
end
return #ARGV / 2
