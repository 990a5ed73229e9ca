-- Adds a plan and its fills, or an archive, to the plans of the namespace, unless anything was
-- added since they were read.
--
-- KEYS[1]  the plans, see plansKey
-- ARGV     number of fields that were read; version of the plan; the plan; for each of its fills:
--          ID, fill; or for an archive: number of fields that were read; its field; the archive
-- Returns  1 if it was added, 0 if the plans must be read again

local key = KEYS[1]
if redis.call('HLEN', key) ~= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', key, ARGV[2], ARGV[3])
for i = 4, #ARGV, 2 do redis.call('HSET', key, 'fill:' .. ARGV[i], ARGV[i + 1]) end
return 1
