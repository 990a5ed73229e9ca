-- Marks in one state shard that records of a topic were skipped.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     topic, until when records are missing, in ms

local refusal = frozen()
if refusal then return refusal end

gap(ARGV[1], ARGV[2])
return 0
