-- Takes partitions for the plan of a version from whatever other plan has them, in one
-- state shard. What is under way of the other plan finds no progress then, and changes
-- nothing. When the other plan was last applied is marked.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     version, how many milliseconds ahead of Redis' clock the timestamp of a record is
--          believed, how many versions there are whose plans keep what they have, these, then for
--          each partition: topic, id
-- Returns  for each partition: its position ("" for none), for how many ms the plan has
--          had it, there ("" if that is not known), and where there is no position what is known
--          of the topic ("" for nothing), and the version of the plan that keeps it ("" for
--          none; the rest is "" then)

local version, kept = ARGV[1], {}
local first = 4 + tonumber(ARGV[3])
for i = 4, first - 1 do kept[ARGV[i]] = true end
local wanted = {}
for i = first, #ARGV, 2 do
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
local function heal(latest)
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local kept = all[i] == 'now' or string.match(all[i], '^[^@/:]+@[^/]+$')
    if kept and (tonumber(all[i + 1]) or 0) > latest then
      redis.call('HSET', key, all[i], string.format('%d', latest))
    end
  end
end

local now = clock()
heal(now + ARGV[2])
local sinces = {}
for i, w in ipairs(wanted) do sinces[i] = 'since:' .. w.topic .. '/' .. w.id end
local since = hmget(sinces)
local last = redis.call('HGET', key, 'now') or '0'
local marked, reply = {}, {}
for i, w in ipairs(wanted) do
  local had, keeper = '', ''
  if w.at and w.under ~= version and kept[w.under] then
    w.at, keeper = nil, w.under
  elseif w.at and w.under ~= version then
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
