-- Claims partitions for a plan in one state shard, from any other plan that has them. Batches of that plan that are
-- still in flight then find no progress and change nothing: they are fenced. The script records where the other plan's
-- epoch ended.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     run of the server on whose state the plan was bound, as in empty.lua ("" if unknown)
--          version of the plan
--          for how many ms ahead of Redis' clock a record's timestamp is believed
--          number of versions that this plan gives way to, and these: their plans keep partitions
--          for how many ms a plan without a fill may have had a partition
--          number of fills, and for each:
--            ID; which of its series the plan has (all, part, none); ID of the fill that continues
--            with that part ("" for none)
--            number of its topics, and these
--            number of plans known to have none of its series, and their versions
--            number of plans known to have all of them, and their versions
--            number of other fills that have all of its columns and more, and their IDs
--            number of other fills of the same series, and their IDs
--          for each partition: topic, id
-- Returns  for each partition:
--            its position ("" for none)
--            for how many ms the plan has had it, if it had it already ("" if unknown)
--            if it has no position: log and partitions of the topic when first seen ("" if never)
--            version of the plan that keeps it ("" for none); its position is "" then
--
-- The script also records the offset ranges that fills have to apply: all before the first claim of a
-- plan with the fill's series, and from each claim of a plan without them to the next claim of a plan
-- with them.

local refusal = frozen() or otherRun(ARGV[1])
if refusal then return refusal end

local version, maxAhead = ARGV[2], tonumber(ARGV[3])
local a = 4 -- index of the next argument to read

-- readSet reads a number and that many arguments.
local function readSet()
  local set = {}
  for i = a + 1, a + tonumber(ARGV[a]) do set[ARGV[i]] = true end
  a = a + 1 + tonumber(ARGV[a])
  return set
end

local givesWayTo = readSet()
local maxAway, count = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
a = a + 2
local fills, known = {}, {}
for i = 1, count do
  fills[i] = {id = ARGV[a], kept = ARGV[a + 1], successor = ARGV[a + 2]}
  known[fills[i].id] = true
  a = a + 3
  fills[i].topics, fills[i].without, fills[i].with = readSet(), readSet(), readSet()
  fills[i].before, fills[i].sharing = readSet(), readSet()
end
local partitions = {}
for i = a, #ARGV, 2 do
  partitions[#partitions + 1] = {topic = ARGV[i], id = ARGV[i + 1], version = version}
end
find(partitions)

-- mergeOldestEpochs keeps the newest 64 ends of plan epochs of a topic and merges the others into a gap. The gap states
-- that everything is missing until then, which never understates.
local function mergeOldestEpochs(topic)
  local epochs, all = {}, redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local t, v = string.match(all[i], '^([^@/:]+)@([^/]+)$')
    if t == topic and v ~= '!' then epochs[#epochs + 1] = {version = v, moment = all[i + 1]} end
  end
  table.sort(epochs, function(x, y) return tonumber(x.moment) < tonumber(y.moment) end)
  for i = 1, #epochs - 64 do
    redis.call('HDEL', key, topic .. '@' .. epochs[i].version)
    recordEnd(topic, '!', epochs[i].moment)
  end
end

-- clampTimestamps lowers recorded timestamps that are greater than the latest credible one. They came from records with
-- wrong dates, and would make features incomplete until then. It returns the IDs of the fills that the shard knows.
local function clampTimestamps(latest)
  local all, ids = redis.call('HGETALL', key), {}
  for i = 1, #all, 2 do
    local isTimestamp = all[i] == 'now' or string.match(all[i], '^[^@/:]+@[^/]+$')
    if isTimestamp and (tonumber(all[i + 1]) or 0) > latest then
      redis.call('HSET', key, all[i], string.format('%d', latest))
    end
    local id = string.match(all[i], '^range:([^:]+):')
    if id then ids[id] = true end
  end
  return ids
end

local now = clock()
for id in pairs(clampTimestamps(now + maxAhead)) do
  -- The caller does not know this fill, so it is unknown whether the plan has its series.
  if not known[id] then fills[#fills + 1] = {id = id, kept = 'part', successor = '', topics = {}, without = {}, with = {}, before = {}, sharing = {}} end
end

-- handOver gives the successor of a fill its ranges and position in a partition.
local function handOver(fill, p, ranges)
  local suffix = ':' .. p.topic .. '/' .. p.id
  redis.call('HSET', key, 'range:' .. fill.successor .. suffix, ranges)
  local at = redis.call('HGET', key, 'fill:' .. fill.id .. suffix)
  if at then redis.call('HSET', key, 'fill:' .. fill.successor .. suffix, at) end
end

-- knows reports whether the partition has any of the fills, with abandoned ones if requested.
local function knows(p, ids, abandoned)
  for id in pairs(ids) do
    local ranges = redis.call('HGET', key, 'range:' .. id .. ':' .. p.topic .. '/' .. p.id)
    if ranges and not p.skipped[id] and (abandoned or ranges ~= '!') then return true end
  end
end

-- updateRanges updates the ranges that a fill has to apply of a partition that the plan claims.
local function updateRanges(fill, p)
  local name = 'range:' .. fill.id .. ':' .. p.topic .. '/' .. p.id
  local ranges = redis.call('HGET', key, name)
  if ranges == '!' or not ranges and not fill.topics[p.topic] then return end
  local at = p.at and offsets(p.at)
  local opened = ranges and string.find(ranges, '@', 1, true)
  if ranges and not opened and at and not fill.with[p.holder] then
    -- That plan has placed the partition after a plan with the fill had claimed it, so no claim has opened a range.
    abandon(fill.id, p.topic, p.id)
  elseif fill.kept == 'part' then
    if ranges and fill.successor ~= '' then handOver(fill, p, ranges) end
    -- No plan with it has had the partition.
    if not ranges then p.skipped[fill.id] = true end
    abandon(fill.id, p.topic, p.id)
  elseif fill.kept == 'none' then
    -- A range opens here, unless one is open.
    if ranges and not opened then
      local separator = string.sub(ranges, -1) == ';' and '' or ','
      redis.call('HSET', key, name, ranges .. separator .. at .. string.format('-@%d', now))
    end
  elseif not ranges then
    if knows(p, fill.before, false) then return end -- it continues as a part of that fill
    if knows(p, fill.sharing, true) then
      -- The other fill may have fed some of its columns.
      abandon(fill.id, p.topic, p.id)
    elseif not at then
      -- The plan will apply all records itself.
      redis.call('HSET', key, name, '-9223372036854775808;')
    elseif fill.without[p.holder] then
      redis.call('HSET', key, name, ';-' .. at)
    else
      abandon(fill.id, p.topic, p.id)
    end
  else
    -- An open range ends here.
    local before, from, since = string.match(ranges, '^(.-),?([%d+/]+)%-@(%d+)$')
    if not before then return end
    local filled = redis.call('HGET', key, 'fill:' .. fill.id .. ':' .. p.topic .. '/' .. p.id)
    if now - since > maxAway or offset(from) > offset(at) then
      abandon(fill.id, p.topic, p.id)
    elseif from == at then
      redis.call('HSET', key, name, before)
    elseif filled and offset(filled) > offset(from) then
      -- The range began at slices that were behind others, of which more was filled.
      abandon(fill.id, p.topic, p.id)
    else
      local separator = string.sub(before, -1) == ';' and '' or ','
      redis.call('HSET', key, name, before .. separator .. from .. '-' .. at)
      -- The fill has no position yet if plans with it have applied everything before.
      if string.sub(before, 1, 1) ~= ';' then
        local position = string.format('%d:-1:%s', offset(from), string.match(p.at, '[^:]*$'))
        redis.call('HSETNX', key, 'fill:' .. fill.id .. ':' .. p.topic .. '/' .. p.id, position)
      end
    end
  end
end

local sinceFields = {}
for i, p in ipairs(partitions) do sinceFields[i] = 'since:' .. p.topic .. '/' .. p.id end
local since = hmget(sinceFields)
local newest = redis.call('HGET', key, 'now') or '0'
local ended, reply = {}, {}
for i, p in ipairs(partitions) do
  local heldFor, keeper = '', ''
  if p.at and p.holder ~= version and givesWayTo[p.holder] then
    p.at, keeper = nil, p.holder
  elseif not p.at or p.holder ~= version then
    p.skipped = {}
    for _, fill in ipairs(fills) do
      if p.at or fill.kept == 'all' then updateRanges(fill, p) end
    end
  end
  if p.at and p.holder ~= version then
    redis.call('HDEL', key, p.field)
    redis.call('HSET', key, positionField(p.topic, version, p.id), p.at, sinceFields[i], string.format('%d', now))
    recordEnd(p.topic, p.holder, newest)
    ended[p.topic] = true
    heldFor = '0'
  elseif p.at and since[i] then
    heldFor = string.format('%d', now - since[i])
  end
  reply[#reply + 1] = p.at or ''
  reply[#reply + 1] = heldFor
  reply[#reply + 1] = not p.at and keeper == '' and redis.call('HGET', key, 'topic:' .. p.topic) or ''
  reply[#reply + 1] = keeper
end
for topic in pairs(ended) do mergeOldestEpochs(topic) end
return reply
