-- Adds a plan to those of the namespace, with what it has to fill, if no other was added
-- since these were read.
--
-- KEYS[1]  the plans, see plansKey
-- ARGV     how many fields there were, the plan's version, the plan, then the fills that come
--          with it: ID, fill
-- Returns  1 if it is there now, 0 if what it has to fill must be found again

local key = KEYS[1]
if redis.call('HLEN', key) ~= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', key, ARGV[2], ARGV[3])
for i = 4, #ARGV, 2 do redis.call('HSET', key, 'fill:' .. ARGV[i], ARGV[i + 1]) end
return 1
