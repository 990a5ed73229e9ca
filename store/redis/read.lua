-- Reads the progress of partitions in one state shard, under any plan.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     for each partition: topic, id, version of the plan that is expected to have it
-- Returns  for each partition its position, "" for none

local partitions = {}
for i = 1, #ARGV, 3 do
  partitions[#partitions + 1] = {topic = ARGV[i], id = ARGV[i + 1], version = ARGV[i + 2]}
end
find(partitions)
local reply = {}
for i, p in ipairs(partitions) do reply[i] = p.at or '' end
return reply
