-- Adds a plan to those of the namespace, with what it has to fill, if no other was added
-- since these were read.
--
-- KEYS[1]  the plans, see plansKey
-- ARGV     how many fields there were, the plan's version, the plan, its fill ("" for none)
-- Returns  1 if it is there now, 0 if what it has to fill must be found again

local key = KEYS[1]
if redis.call('HEXISTS', key, ARGV[2]) == 1 then return 1 end
if redis.call('HLEN', key) ~= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', key, ARGV[2], ARGV[3])
if ARGV[4] ~= '' then redis.call('HSET', key, 'fill:' .. ARGV[2], ARGV[4]) end
return 1
