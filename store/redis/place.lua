-- Puts the progress of partitions, in one state shard, where applying has not led it: gives
-- a first position, skips what is lost, goes back to where a log was truncated, or
-- goes on in another log. With the position it writes which log that is and, where records
-- are missing, marks the gap of the history.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     for each partition: topic, id, the version under which it is placed if no plan
--          has it, the position that must be found ("" for none), the new one, until when
--          records are missing in ms ("" for no gap), the log of the new position, the
--          number of the topic's partitions
-- Returns  how many partitions were placed; others were not as they must be found

local refusal = frozen()
if refusal then return refusal end

local wanted = {}
for i = 1, #ARGV, 8 do
  wanted[#wanted + 1] = {
    topic = ARGV[i], id = ARGV[i + 1], version = ARGV[i + 2], from = ARGV[i + 3], to = ARGV[i + 4],
    gap = ARGV[i + 5], log = ARGV[i + 6], partitions = ARGV[i + 7],
  }
end
find(wanted)

-- unplace gives up what fills have still to apply of a partition that goes back, or goes
-- on in another log.
local function unplace(w)
  local other = string.match(w.at, '[^:]*$') ~= string.match(w.to, '[^:]*$') and offset(w.at) ~= offset(w.to)
  if offset(w.to) >= offset(w.at) and not other then return end
  for _, name in ipairs(redis.call('HKEYS', key)) do
    local fill, topic, id = string.match(name, '^range:([^:]+):([^:/]+)/(%d+)$')
    if topic == w.topic and id == w.id then
      local ranges, at = redis.call('HGET', key, name), redis.call('HGET', key, 'fill:' .. fill .. ':' .. topic .. '/' .. id)
      local last = ends(ranges)
      local done = last and (last == 0 or at and offset(at) >= last)
      if ranges ~= '!' and not done then unfill(fill, topic, id) end
    end
  end
end

-- know notes which log a topic is; the number of its partitions stays that of the first time.
local function know(w)
  local tag, name = string.match(w.to, '[^:]*$'), 'topic:' .. w.topic
  local known = redis.call('HGET', key, name)
  if not known then
    redis.call('HSET', key, name, tag .. ':' .. w.partitions)
  elseif string.match(known, '^[^:]*') ~= tag then
    redis.call('HSET', key, name, tag .. string.match(known, ':.*'))
  end
  if tag ~= '' then redis.call('HSETNX', key, 'log:' .. tag, w.log) end
end

local placed, now = 0, string.format('%d', clock())
for _, w in ipairs(wanted) do
  if (w.at or '') == w.from then
    if w.at then unplace(w) end
    redis.call('HSET', key, w.name, w.to)
    -- Whoever applies what lies behind a gap waits until all know of it, see Claim.Held.
    if not w.at or w.gap ~= '' then redis.call('HSET', key, 'since:' .. w.topic .. '/' .. w.id, now) end
    know(w)
    if w.gap ~= '' then gap(w.topic, w.gap) end
    placed = placed + 1
  end
end
return placed
