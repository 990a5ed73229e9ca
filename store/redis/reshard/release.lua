-- Unfreezes an old shard, and ends its copying.
--
-- KEYS[1]  progress of the shard
-- ARGV     token of the process that last took the shard
-- Returns  the token of the process that copied, "" if none did, or another has taken the shard

if redis.call('HGET', KEYS[1], 'resharder') ~= ARGV[1] then return '' end
local token = redis.call('HGET', KEYS[1], 'copying') or ''
redis.call('HDEL', KEYS[1], 'copying', 'frozen')
return token
