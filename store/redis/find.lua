-- What the scripts of progress share: claim.lua, place.lua, gap.lua, noticed.lua, read.lua,
-- fill.lua, archive.lua and empty.lua begin with it.
--
-- The progress of a shard is a HASH:
--   <topic>@<version>/<id>    position of the partition, which only the plan of that version may
--                             apply: "offset:epoch:log", see state.Position; "offset+ahead/slices:…"
--                             while some slices of the shard are ahead
--   <topic>@<version>         end of the epochs of a past plan: the greatest timestamp of the
--                             records that it may have applied; for the version "!", of the
--                             records that no plan applied: a gap
--   since:<topic>/<id>        when the current plan claimed the partition, or a gap was last
--                             recorded before its position, in ms by the clock of Redis
--   topic:<topic>             log, and number of partitions, of the topic when it was first seen
--   log:<log>                 cluster ID / topic ID of a log
--   now                       greatest record timestamp applied, in ms
--   lag                       least time by which "now" was behind the clock, in ms
--   begun                     the shard had no state keys, so it may get its first position; one that
--                             has a position has begun, too
--   secret, hash_entities, format
--                             those of the layout when the shard began: its state cannot be read without
--                             them, and the layout may be at another server, which may lose it
--   evicted                   run of the server, and number of keys that it had evicted when that was last
--                             recorded: "run:keys"; see noticed.lua
--   ahead                     greatest time, in ms, that the clock of Redis has shown while it was
--                             ahead, and "now" when that was noticed: "clock:now"; see noticed.lua
--   emptying                  the shard is being emptied, by this walk over the keys; see empty.lua
--   copying                   the shard is being copied by the process with that token: the keys that
--                             change are noted, see package reshard
--   frozen                    the shard has been copied, or is not copied yet: nothing may change it
--   shards                    the number of shards that took over from this one
--   range:<fill>:<topic>/<id> the offsets of the partition that a fill has to apply, see
--                             state.Filling: "since;from-to,from-@ms"; "!" if the fill was abandoned
--   fill:<fill>:<topic>/<id>  position up to which the fill has applied them, moved by apply.lua
--   archive:<cut>:<archive>   number of rows of an archive, and the event time in ms since which it
--                             has all events: "rows;since"
--   fill:<fill>:archive:<archive>/0
--                             position up to which the fill has applied its rows, moved by apply.lua

local key = KEYS[1]

-- frozen returns the error of a frozen shard, false for any other.
local function frozen()
  return redis.call('HGET', key, 'frozen') and redis.error_reply('RESHARDING weir reshard has not finished')
end

-- begun returns whether a shard has begun: whether its state belongs to its progress.
local function begun(progress)
  if redis.call('HGET', progress, 'begun') then return true end
  for _, name in ipairs(redis.call('HKEYS', progress)) do
    if string.match(name, '^[^:]+/%d+$') or string.match(name, '^fill:.+/%d+$') then return true end
  end
  return false
end

-- notBegun returns the error of a shard that has not begun: it must be emptied before it gets a
-- position. The state that it may have is of unknown records, which would count again.
local function notBegun()
  return not begun(key) and redis.error_reply('NOTBEGUN the shard has no progress and was not emptied')
end

-- runOfServer returns the ID of this run of the server, nil if the server does not say it: that of the demo does not.
local function runOfServer()
  local about = redis.pcall('INFO', 'server')
  return type(about) == 'string' and string.match(about, 'run_id:(%w+)') or nil
end

-- otherRun returns the error of a server that is not in the run with an ID, false for any other and without an ID.
local function otherRun(id)
  if id == '' or (runOfServer() or id) == id then return false end
  return redis.error_reply('OTHERRUN the server was restarted or replaced')
end

-- hmget reads fields of the progress. A call is about no more partitions than Lua can pass to a
-- command, see callPartitions.
local function hmget(names) return redis.call('HMGET', key, unpack(names)) end

local function positionField(topic, version, id)
  if version == '' then return topic .. '/' .. id end
  return topic .. '@' .. version .. '/' .. id
end

-- find looks up the progress of partitions, each with topic, id and version, under any plan. It
-- sets at, the position (nil for none), holder, the version of the plan that has the partition,
-- and field, where the position is or will be.
local function find(partitions)
  local fields, others, missing = {}, {}, false
  for i, p in ipairs(partitions) do fields[i] = positionField(p.topic, p.version, p.id) end
  local values = hmget(fields)
  for i, p in ipairs(partitions) do
    p.field, p.at, p.holder = fields[i], values[i] or nil, p.version
    if not p.at then
      missing = true
      others[p.topic .. '/' .. p.id] = p
    end
  end
  if not missing then return end
  for _, name in ipairs(redis.call('HKEYS', key)) do
    local topic, version, id = string.match(name, '^([^@/:]+)@?([^@/:]*)/(%d+)$')
    local p = topic and others[topic .. '/' .. id]
    if p then
      p.field, p.at, p.holder = name, redis.call('HGET', key, name), version
    end
  end
end

-- recordEnd records that a plan may have applied records with timestamps up to a moment.
local function recordEnd(topic, version, moment)
  local name = topic .. '@' .. version
  if tonumber(redis.call('HGET', key, name) or '-1') < tonumber(moment) then
    redis.call('HSET', key, name, moment)
  end
end

-- recordGap records that records are missing with timestamps up to a moment, or up to the
-- greatest one applied.
local function recordGap(topic, moment)
  local newest = redis.call('HGET', key, 'now') or '0'
  if tonumber(moment) > tonumber(newest) then newest = moment end
  recordEnd(topic, '!', newest)
end

-- offset returns the offset of a position, which some slices may have passed.
local function offset(position) return tonumber(string.match(position, '^%d+')) end

-- offsets returns the offsets of a position, "offset" or "offset+ahead/slices".
local function offsets(position) return string.match(position, '^[^:]+') end

-- furthest returns the greatest offset that a slice has in a position.
local function furthest(position) return tonumber(string.match(position, '^%d+%+(%d+)') or offset(position)) end

-- endOf returns the offset at which the ranges of a fill end: 0 if there are none, nil if the last
-- one is open.
local function endOf(ranges)
  if string.sub(ranges, -1) == ';' then return 0 end
  local last = string.match(ranges, '%-([%d+/]+)$')
  return last and furthest(last)
end

-- abandon gives up a fill of a partition: it is no longer known what the fill has to apply.
local function abandon(fill, topic, id)
  redis.call('HSET', key, 'range:' .. fill .. ':' .. topic .. '/' .. id, '!')
  redis.call('HDEL', key, 'fill:' .. fill .. ':' .. topic .. '/' .. id)
end

-- clock returns the time of Redis in ms.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

