-- Takes partitions for the plan of a version from whatever other plan has them, in one
-- state shard. What is under way of the other plan finds no progress then, and changes
-- nothing. When the other plan was last applied is marked.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     version, how many milliseconds ahead of Redis' clock the timestamp of a record is
--          believed, how many versions there are whose plans keep what they have, these,
--          for how many milliseconds a plan without a fill may have had a partition,
--          how many fills there are, for each: its ID, how much the plan has of it (all, part,
--          none), the ID of the fill that goes on with that part ("" for none), how many topics it has and these, how many plans are known to feed none of
--          its series and their versions; then for each partition: topic, id
--
-- What a fill of the plan lacks of a partition is noted: the records that were applied before
-- the plan took it. A plan without the fill opens a range that ends where one with it takes
-- the partition again.
--
-- Returns  for each partition: its position ("" for none), for how many ms the plan has
--          had it, there ("" if that is not known), and where there is no position what is known
--          of the topic ("" for nothing), and the version of the plan that keeps it ("" for
--          none; the rest is "" then)

local refusal = frozen()
if refusal then return refusal end

local version, ahead = ARGV[1], tonumber(ARGV[2])
local a = 3 -- the next argument to read

local function set()
  local members = {}
  for i = a + 1, a + tonumber(ARGV[a]) do members[ARGV[i]] = true end
  a = a + 1 + tonumber(ARGV[a])
  return members
end

local kept = set()
local away, count = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
a = a + 2
local fills, known = {}, {}
for i = 1, count do
  fills[i] = {id = ARGV[a], kept = ARGV[a + 1], part = ARGV[a + 2]}
  known[fills[i].id] = true
  a = a + 3
  fills[i].topics, fills[i].free = set(), set()
end
local wanted = {}
for i = a, #ARGV, 2 do
  wanted[#wanted + 1] = {topic = ARGV[i], id = ARGV[i + 1], version = version}
end
find(wanted)

-- fold makes a gap of the earliest marks of a topic where there are very many: they say
-- that all is missing until then, which is never too little.
local function fold(topic)
  local marks, held = {}, redis.call('HGETALL', key)
  for i = 1, #held, 2 do
    local t, v = string.match(held[i], '^([^@/:]+)@([^/]+)$')
    if t == topic and v ~= '!' then marks[#marks + 1] = {v, held[i + 1]} end
  end
  table.sort(marks, function(x, y) return tonumber(x[2]) < tonumber(y[2]) end)
  for i = 1, #marks - 64 do
    redis.call('HDEL', key, topic .. '@' .. marks[i][1])
    mark(topic, '!', marks[i][2])
  end
end

-- heal lowers the timestamps that are beyond a moment. They came from records
-- that were dated wrongly, and would keep all from being complete until then.
-- It returns the fills that the shard knows.
local function heal(latest)
  local all, ids = redis.call('HGETALL', key), {}
  for i = 1, #all, 2 do
    local kept = all[i] == 'now' or string.match(all[i], '^[^@/:]+@[^/]+$')
    if kept and (tonumber(all[i + 1]) or 0) > latest then
      redis.call('HSET', key, all[i], string.format('%d', latest))
    end
    local id = string.match(all[i], '^range:([^:]+):')
    if id then ids[id] = true end
  end
  return ids
end

local now = clock()
local noted = heal(now + ahead)
for id in pairs(noted) do
  -- Of a fill that the caller does not know nobody can say whether the plan has it.
  if not known[id] then fills[#fills + 1] = {id = id, kept = 'part', part = '', topics = {}, free = {}} end
end

-- goOn hands what is to be filled of a partition, and how far that is, to the fill of a part.
local function goOn(fill, w, ranges)
  local of = ':' .. w.topic .. '/' .. w.id
  redis.call('HSET', key, 'range:' .. fill.part .. of, ranges)
  local at = redis.call('HGET', key, 'fill:' .. fill.id .. of)
  if at then redis.call('HSET', key, 'fill:' .. fill.part .. of, at) end
end

-- fed notes what a plan that takes a partition means to a fill of it.
local function fed(fill, w)
  local name = 'range:' .. fill.id .. ':' .. w.topic .. '/' .. w.id
  local ranges = redis.call('HGET', key, name)
  if ranges == '!' or not ranges and not fill.topics[w.topic] then return end
  local at = w.at and string.format('%d', offset(w.at))
  if fill.kept == 'part' then
    if ranges and fill.part ~= '' then goOn(fill, w, ranges) end
    unfill(fill.id, w.topic, w.id)
  elseif fill.kept == 'none' then
    if ranges and not string.find(ranges, '@', 1, true) then
      local separator = string.sub(ranges, -1) == ';' and '' or ','
      redis.call('HSET', key, name, ranges .. separator .. at .. string.format('-@%d', now))
    end
  elseif not ranges then
    if not at then
      redis.call('HSET', key, name, '-9223372036854775808;') -- all of it will be fed
    elseif fill.free[w.under] then
      redis.call('HSET', key, name, ';-' .. at)
    else
      unfill(fill.id, w.topic, w.id)
    end
  else
    local before, from, since = string.match(ranges, '^(.-),?(%d+)%-@(%d+)$')
    if not before then return end
    if now - since > away or tonumber(from) > tonumber(at) then
      unfill(fill.id, w.topic, w.id)
    elseif from == at then
      redis.call('HSET', key, name, before)
    else
      local separator = string.sub(before, -1) == ';' and '' or ','
      redis.call('HSET', key, name, before .. separator .. from .. '-' .. at)
    end
  end
end

local sinces = {}
for i, w in ipairs(wanted) do sinces[i] = 'since:' .. w.topic .. '/' .. w.id end
local since = hmget(sinces)
local last = redis.call('HGET', key, 'now') or '0'
local marked, reply = {}, {}
for i, w in ipairs(wanted) do
  local had, keeper = '', ''
  if w.at and w.under ~= version and kept[w.under] then
    w.at, keeper = nil, w.under
  elseif not w.at or w.under ~= version then
    for _, fill in ipairs(fills) do
      if w.at or fill.kept == 'all' then fed(fill, w) end
    end
  end
  if w.at and w.under ~= version then
    redis.call('HDEL', key, w.name)
    redis.call('HSET', key, field(w.topic, version, w.id), w.at, sinces[i], string.format('%d', now))
    mark(w.topic, w.under, last)
    marked[w.topic] = true
    had = '0'
  elseif w.at and since[i] then
    had = string.format('%d', now - since[i])
  end
  reply[#reply + 1] = w.at or ''
  reply[#reply + 1] = had
  reply[#reply + 1] = not w.at and keeper == '' and redis.call('HGET', key, 'topic:' .. w.topic) or ''
  reply[#reply + 1] = keeper
end
for topic in pairs(marked) do fold(topic) end
return reply
