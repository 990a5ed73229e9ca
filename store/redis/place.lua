-- Places partitions in one state shard: sets their positions to offsets that applying has not reached. That is a first
-- position, one after lost records, one before the point where a log was truncated, or one in another log. With the
-- position the script records its log and, if records are missing, the gap.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     for each partition: topic, id, version under which it is placed if no plan has it,
--          expected position ("" for none), new position, greatest timestamp of the missing
--          records in ms ("" for no gap), log of the new position, number of the topic's partitions
-- Returns  the number of partitions placed; the others did not have the expected position; or the
--          error NOTBEGUN if the shard has not begun

local refusal = frozen() or notBegun()
if refusal then return refusal end

local partitions = {}
for i = 1, #ARGV, 8 do
  partitions[#partitions + 1] = {
    topic = ARGV[i], id = ARGV[i + 1], version = ARGV[i + 2], from = ARGV[i + 3], to = ARGV[i + 4],
    gap = ARGV[i + 5], log = ARGV[i + 6], count = ARGV[i + 7],
  }
end
find(partitions)

-- contradicts returns whether the log with a tag is known to differ from another one, see state.LogID.
local function contradicts(tag, log)
  local cluster, topic = string.match(tag ~= '' and redis.call('HGET', key, 'log:' .. tag) or '/', '^(.*)/(.*)$')
  local otherCluster, otherTopic = string.match(log, '^(.*)/(.*)$')
  local function differ(a, b) return a ~= '' and b ~= '' and a ~= b end
  return differ(cluster, otherCluster) or differ(topic, otherTopic)
end

-- abandonFills gives up the unfinished fills of a partition that goes back or continues in another log.
local function abandonFills(p)
  if furthest(p.to) >= furthest(p.at) and not contradicts(string.match(p.at, '[^:]*$'), p.log) then return end
  for _, name in ipairs(redis.call('HKEYS', key)) do
    local fill, topic, id = string.match(name, '^range:([^:]+):([^:/]+)/(%d+)$')
    if topic == p.topic and id == p.id then
      local ranges, at = redis.call('HGET', key, name), redis.call('HGET', key, 'fill:' .. fill .. ':' .. topic .. '/' .. id)
      local last = endOf(ranges)
      local finished = last and (last == 0 or at and offset(at) >= last)
      if ranges ~= '!' and not finished then abandon(fill, topic, id) end
    end
  end
end

-- recordLog records the current log of a topic. The number of partitions stays as first seen.
local function recordLog(p)
  local tag, name = string.match(p.to, '[^:]*$'), 'topic:' .. p.topic
  local known = redis.call('HGET', key, name)
  if not known then
    redis.call('HSET', key, name, tag .. ':' .. p.count)
  elseif string.match(known, '^[^:]*') ~= tag then
    redis.call('HSET', key, name, tag .. string.match(known, ':.*'))
  end
  if tag ~= '' then redis.call('HSETNX', key, 'log:' .. tag, p.log) end
end

local placed, now = 0, string.format('%d', clock())
for _, p in ipairs(partitions) do
  if (p.at or '') == p.from then
    if p.at then abandonFills(p) end
    redis.call('HSET', key, p.field, p.to)
    -- A processor waits for the grace period before it applies records after a gap, see state.Claim.OwnedMs.
    if not p.at or p.gap ~= '' then redis.call('HSET', key, 'since:' .. p.topic .. '/' .. p.id, now) end
    recordLog(p)
    if p.gap ~= '' then recordGap(p.topic, p.gap) end
    placed = placed + 1
  end
end
return placed
