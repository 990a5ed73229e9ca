-- Reads the progress of partitions in one state shard, under whatever plan.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     for each partition: topic, id, the version of the plan that should have it
-- Returns  for each partition its position, "" for none

local wanted = {}
for i = 1, #ARGV, 3 do
  wanted[#wanted + 1] = {topic = ARGV[i], id = ARGV[i + 1], version = ARGV[i + 2]}
end
find(wanted)
local reply = {}
for i, w in ipairs(wanted) do reply[i] = w.at or '' end
return reply
