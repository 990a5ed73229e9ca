-- Sets the fields of a layout that it lacks.
--
-- KEYS[1]  layout of the namespace
-- ARGV     names and values

for i = 1, #ARGV, 2 do redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
