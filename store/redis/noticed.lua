-- Records in one state shard what a processor has noticed of its server: that it has evicted keys, or that its clock was
-- set: it may have been ahead.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     run of the server; number of keys that it has evicted since it was started
--          greatest time in ms that its clock has shown, if it was set; else 0
-- Returns  1, or 0 if the shard is frozen and nothing was recorded
--
-- What evicted keys held is missing, as in a gap. If another run was recorded, that server may have evicted keys after it
-- was last asked. A shard that has applied nothing has lost nothing.

if frozen() then return 0 end

local run, count, ahead = ARGV[1], ARGV[2], tonumber(ARGV[3])
local recorded, newest, last = unpack(hmget({'evicted', 'now', 'ahead'}))
if ahead > 0 and newest then
  local before = last and tonumber(string.match(last, '^%d+')) or 0
  redis.call('HSET', key, 'ahead', string.format('%.0f:%s', math.max(ahead, before), newest))
end
if recorded == run .. ':' .. count or count == '0' and not recorded then return 1 end
local known = recorded and string.match(recorded, '^(.*):') or run
if newest and (count ~= '0' or known ~= run) then
  local topics = {}
  for _, name in ipairs(redis.call('HKEYS', key)) do
    local topic = string.match(name, '^([^@/:]+)@?[^@/:]*/%d+$')
    if topic then topics[topic] = true end
  end
  for topic in pairs(topics) do recordGap(topic, '0') end
end
redis.call('HSET', key, 'evicted', run .. ':' .. count)
return 1
