-- Adds fields to the plans of the namespace, unless any were added since they were read.
--
-- KEYS[1]  the plans, see plansKey
-- ARGV     number of fields that were read; name and value of each new field
-- Returns  1 if they were added, 0 if the plans must be read again

local key = KEYS[1]
if redis.call('HLEN', key) ~= tonumber(ARGV[1]) then return 0 end
for i = 2, #ARGV, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
return 1
