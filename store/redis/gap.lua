-- Records a gap in one state shard: records of a topic were skipped.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     topic, greatest timestamp of the missing records in ms
-- Returns  0

local refusal = frozen()
if refusal then return refusal end

recordGap(ARGV[1], ARGV[2])
return 0
