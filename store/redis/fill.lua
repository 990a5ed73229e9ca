-- Records, in one state shard, from which offset fills apply partitions, and since when they cover
-- them. If a partition's offset is recorded already, only the time changes, to a later one.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     for each partition: fill, topic, id, first offset, time from which it is covered in ms,
--          tag of the log
-- Returns  0

local refusal = frozen()
if refusal then return refusal end

for i = 1, #ARGV, 6 do
  local fill, topic, id = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local name = 'range:' .. fill .. ':' .. topic .. '/' .. id
  local ranges = redis.call('HGET', key, name)
  local first, rest = string.match(ranges or '', '^;%-(%d+)(.*)$')
  if first then
    local from = math.min(tonumber(ARGV[i + 3]), tonumber(first))
    redis.call('HSET', key, name, string.format('%s;%d-%s%s', ARGV[i + 4], from, first, rest),
      'fill:' .. fill .. ':' .. topic .. '/' .. id, string.format('%d:-1:%s', from, ARGV[i + 5]))
  elseif ranges and ranges ~= '!' then
    local since, list = string.match(ranges, '^(-?%d+);(.*)$')
    if since and tonumber(since) < tonumber(ARGV[i + 4]) then
      redis.call('HSET', key, name, ARGV[i + 4] .. ';' .. list)
    end
  end
end
return 0
