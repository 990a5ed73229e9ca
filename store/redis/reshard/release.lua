-- Unfreezes an old shard, and ends its copying.
--
-- KEYS[1]  progress of the shard
-- ARGV     token of the process that copies; "" for any process
-- Returns  the token of the process that copied, "" if none did, or another

local token = redis.call('HGET', KEYS[1], 'copying') or ''
if ARGV[1] ~= '' and ARGV[1] ~= token then return '' end
redis.call('HDEL', KEYS[1], 'copying', 'frozen')
return token
