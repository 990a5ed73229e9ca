-- Takes the set of the keys that have changed, so that a new set begins. If a set that was taken is still being copied,
-- it stays the taken one: the call may be repeated.
--
-- KEYS[1]  keys that have changed
-- KEYS[2]  keys taken
-- Returns  the number of keys taken

if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('RENAME', KEYS[1], KEYS[2])
end
return redis.call('SCARD', KEYS[2])
