-- What the scripts of progress share: claim.lua, place.lua, gap.lua, read.lua and fill.lua begin with it.
--
-- The progress of a shard is a HASH:
--   <topic>@<version>/<id> -> position of the partition, by the plan of that version alone:
--                             offset:epoch:log, see state.Position
--   <topic>@<version>      -> greatest record timestamp that a plan no longer in use may have met;
--                             of the version "!" that of records that no plan was applied to
--   since:<topic>/<id>     -> when its present plan took the partition, or a gap was last marked in
--                             front of its position, by Redis' clock, in ms
--   topic:<topic>          -> log and number of partitions of the topic when it was first met
--   log:<log>              -> cluster ID / topic ID of a log
--   now                    -> greatest record timestamp
--   frozen                 -> the shard is being copied, or is not copied yet: nothing may change it, see package reshard
--   range:<fill>:<topic>/<id> -> what of the partition a fill has to apply, see state.Filling: since;from-to,from-@ms
--   fill:<fill>:<topic>/<id>  -> position up to which it has, moved by apply.lua

local key = KEYS[1]

-- frozen is the error of a shard that nothing may change, false for any other.
local function frozen()
  return redis.call('HGET', key, 'frozen') and redis.error_reply('RESHARDING weir reshard has not finished')
end

-- The greatest number of values that are passed to a command, or come from a table, at once.
local most = 1000

local function hmget(names)
  local values = {}
  for first = 1, #names, most do
    local last = math.min(first + most - 1, #names)
    local some = redis.call('HMGET', key, unpack(names, first, last))
    for i = 1, last - first + 1 do values[first + i - 1] = some[i] end
  end
  return values
end

local function field(topic, version, id)
  if version == '' then return topic .. '/' .. id end
  return topic .. '@' .. version .. '/' .. id
end

-- find looks up where the progress of partitions stands. Each of wanted has topic, id
-- and version; it gets at, the position, nil for none; name, the field that holds it or
-- will; and under, the version of the plan that has it.
local function find(wanted)
  local names, rest, missing = {}, {}, false
  for i, w in ipairs(wanted) do names[i] = field(w.topic, w.version, w.id) end
  local values = hmget(names)
  for i, w in ipairs(wanted) do
    w.name, w.at, w.under = names[i], values[i] or nil, w.version
    if not w.at then
      missing = true
      rest[w.topic .. '/' .. w.id] = w
    end
  end
  if not missing then return end
  for _, name in ipairs(redis.call('HKEYS', key)) do
    local t, v, i = string.match(name, '^([^@/:]+)@?([^@/:]*)/(%d+)$')
    local w = t and rest[t .. '/' .. i]
    if w then
      w.name, w.at, w.under = name, redis.call('HGET', key, name), v
    end
  end
end

local function mark(topic, version, last)
  local name = topic .. '@' .. version
  if tonumber(redis.call('HGET', key, name) or '-1') < tonumber(last) then
    redis.call('HSET', key, name, last)
  end
end

-- gap marks that records up to a moment are missing, or up to the newest that was applied.
local function gap(topic, moment)
  local last = redis.call('HGET', key, 'now') or '0'
  if tonumber(moment) > tonumber(last) then last = moment end
  mark(topic, '!', last)
end

-- The offset of a position.
local function offset(position) return tonumber(string.match(position, '^%d+')) end

-- Where a list of ranges ends, 0 where there are none; nil where the last one is open.
local function ends(ranges)
  if string.sub(ranges, -1) == ';' then return 0 end
  local last = string.match(ranges, '%-(%d+)$')
  return last and tonumber(last)
end

-- unfill gives up a fill of a partition: what was applied of it cannot be told any more.
local function unfill(fill, topic, id)
  redis.call('HSET', key, 'range:' .. fill .. ':' .. topic .. '/' .. id, '!')
  redis.call('HDEL', key, 'fill:' .. fill .. ':' .. topic .. '/' .. id)
end

local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

