-- What concerns one partition's progress in one state shard as a whole.
--
-- KEYS[1]  the shard's progress: HASH
--            <topic>@<version>/<id> -> next offset to apply, by that plan alone
--            <topic>@<version>      -> greatest record timestamp that a plan no longer in use may have met;
--                                      of the version "!" that of records that no plan was applied to
--            since:<topic>/<id>     -> when its present plan took the partition, by Redis' clock, in ms
--            now                    -> greatest record timestamp
-- ARGV     topic, partition, version, and what is wanted:
--            claim ahead    take the partition from other plans; returns the offset, "" for none. Timestamps that are
--                           more than so many milliseconds ahead of Redis' clock are lowered to that
--            start offset   give it its first offset, unless it has one under whatever plan
--            gap moment     mark that records up to a moment are missing
--            forget         take its progress back
--            read           the offset under whatever plan, "" for none
-- Returns  the offset, and for how many ms its plan has had it ("" if that is not known)

local key, topic, id, version, what = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function field(v)
  if v == '' then return topic .. '/' .. id end
  return topic .. '@' .. v .. '/' .. id
end

-- The fields of the partition, by version.
local held = {}
for _, name in ipairs(redis.call('HKEYS', key)) do
  local t, v, i = string.match(name, '^([^@/:]+)@?([^@/]*)/(%d+)$')
  if t == topic and i == id then held[v] = name end
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local since = 'since:' .. topic .. '/' .. id

if what == 'forget' then
  for _, name in pairs(held) do redis.call('HDEL', key, name) end
  return {'', ''}
end
if what == 'start' then
  if next(held) == nil then
    redis.call('HSET', key, field(version), ARGV[5], since, string.format('%d', now))
  end
  return {'', ''}
end
if what == 'read' then
  for _, name in pairs(held) do return {redis.call('HGET', key, name), ''} end
  return {'', ''}
end

local function mark(v, last)
  local name = topic .. '@' .. v
  if tonumber(redis.call('HGET', key, name) or '-1') < tonumber(last) then
    redis.call('HSET', key, name, last)
  end
end

-- fold makes a gap of the earliest marks where there are very many: they say
-- that all is missing until then, which is never too little.
local function fold()
  local marks, held = {}, redis.call('HGETALL', key)
  for i = 1, #held, 2 do
    local t, v = string.match(held[i], '^([^@/:]+)@([^/]+)$')
    if t == topic and v ~= '!' then marks[#marks + 1] = {v, held[i + 1]} end
  end
  table.sort(marks, function(x, y) return tonumber(x[2]) < tonumber(y[2]) end)
  for i = 1, #marks - 64 do
    redis.call('HDEL', key, topic .. '@' .. marks[i][1])
    mark('!', marks[i][2])
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

if what == 'claim' then heal(now + ARGV[5]) end
local last = redis.call('HGET', key, 'now') or '0'
if what == 'gap' then
  if tonumber(ARGV[5]) > tonumber(last) then last = ARGV[5] end
  mark('!', last)
  return {'', ''}
end

local offset = held[version] and redis.call('HGET', key, held[version])
for v, name in pairs(held) do
  if v ~= version then
    offset = offset or redis.call('HGET', key, name)
    redis.call('HDEL', key, name)
    mark(v, last)
    fold()
  end
end
if not offset then return {'', ''} end
if not held[version] then
  redis.call('HSET', key, field(version), offset, since, string.format('%d', now))
  return {offset, '0'}
end
local from = redis.call('HGET', key, since)
return {offset, from and string.format('%d', now - from) or ''}
