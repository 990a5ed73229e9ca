-- Makes one step of emptying shards that have not begun: deletes state keys of theirs, and has them
-- begin once a walk over all keys is over. No key appears behind the walk: batches find no position, and
-- while the shards are being emptied no other script adds keys.
--
-- KEYS     progress of each shard of the server
--          or, in a cluster, that of one shard, and a key that never exists: Redis refuses a call about
--          both (TRYAGAIN) while its slot moves key by key, and other keys may be at another master
-- ARGV     slot of the shard in a cluster, else ""
--          how many keys to look at, for SCAN the pattern of the namespace's keys
--          the walk and the place in it that the step before has returned, "" and 0 for the first step
--          "begun", or "frozen" if only those begin that have the field "anew": others lack keys that old shards still have
--          fields of the layout that the shards record as they begin, each with its value
-- Returns  1 if all of the shards have begun, or are frozen, else 0; the walk; the place; number of keys deleted
--
-- A walk by SCAN is over all keys only if one server has made all its steps. So its name says which run of
-- which server began it, and it starts over with another name at any other. Several processes may take part
-- in a walk, each from the start: what counts is that no key has appeared since it began.
--
-- In a cluster each step lists the slot from its start. The place is how many keys stayed in it.
--
-- PERSIST comes first: a full memory refuses no write after that.

local key = KEYS[1]

-- begun returns whether a shard has begun: whether its state belongs to its record.
local function begun(record)
  if redis.call('HGET', record, 'begun') then return true end
  for _, name in ipairs(redis.call('HKEYS', record)) do
    if string.match(name, '^[^:]+/%d+$') or string.match(name, '^fill:.+/%d+$') then return true end
  end
  return false
end

local slot, count, pattern, walk, place = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]

local open, any = {}, false -- the progress of the shards that have not begun, by tag
for _, progress in ipairs(KEYS) do
  local tag = string.match(progress, '^(.*)progress$')
  if tag then
    local held = redis.call('HMGET', progress, 'frozen', 'copying')
    if held[1] or held[2] then return redis.error_reply('RESHARDING weir reshard has not finished') end
    if not begun(progress) then open[tag], any = progress, true end
  end
end
if not any then return {1, walk, place, 0} end
redis.call('PERSIST', key)

-- server names this run of the server, and its replication, as far as the server says it.
local function server()
  local replication = redis.pcall('INFO', 'replication')
  return (runOfServer() or '') .. '/' .. (type(replication) == 'string' and string.match(replication, 'master_replid:(%w+)') or '') .. '/'
end

-- evicted returns what the progress says of keys that the server has evicted before its shards begin: they had none of them.
local function evicted()
  local run, stats = runOfServer(), redis.pcall('INFO', 'stats')
  local count = type(stats) == 'string' and string.match(stats, 'evicted_keys:(%d+)')
  return run and count and count ~= '0' and run .. ':' .. count
end

-- walkOf returns the walk that this server is making, and begins one if there is none.
local function walkOf()
  local known, run = nil, server()
  for _, progress in pairs(open) do
    local found = redis.call('HGET', progress, 'emptying') or ''
    if string.sub(found, 1, #run) ~= run or known and found ~= known then
      known = nil
      break
    end
    known = found
  end
  if known then return known end
  local t = redis.call('TIME')
  known = run .. t[1] .. '.' .. t[2]
  for _, progress in pairs(open) do redis.call('HSET', progress, 'emptying', known) end
  return known
end

local names, over
if slot ~= '' then
  names = redis.call('CLUSTER', 'GETKEYSINSLOT', slot, count + place)
  over = #names < count + place
else
  local known = walkOf()
  if walk ~= known then walk, place = known, '0' end
  local reply = redis.call('SCAN', place, 'MATCH', pattern, 'COUNT', count)
  place, names = reply[1], reply[2]
  over = place == '0'
end
local deleted = 0
for _, name in ipairs(names) do
  local tag = string.match(name, '^([^}]*})[^:]*:')
  if tag and open[tag] then deleted = deleted + redis.call('DEL', name) end
end
if slot ~= '' then place = #names - deleted end
if over then
  local before = evicted()
  for _, progress in pairs(open) do
    if before then redis.call('HSET', progress, 'evicted', before) end
    local mark = redis.call('HGET', progress, 'anew') and 'begun' or ARGV[6]
    redis.call('HDEL', progress, 'emptying', 'anew')
    redis.call('HSET', progress, mark, '1', unpack(ARGV, 7))
  end
end
return {over and 1 or 0, walk, tostring(place), deleted}
