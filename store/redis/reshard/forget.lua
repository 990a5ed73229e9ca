-- Deletes fields of a layout, if the first one is still what it was.
--
-- KEYS[1]  layout of the namespace
-- ARGV     value of the first field, and the fields
-- Returns  the number of fields deleted

if redis.call('HGET', KEYS[1], ARGV[2]) ~= ARGV[1] then return 0 end
return redis.call('HDEL', KEYS[1], unpack(ARGV, 2))
