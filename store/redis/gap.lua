-- Marks in one state shard that records of a topic were passed over.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     topic, until when records are missing, in ms

gap(ARGV[1], ARGV[2])
return 0
