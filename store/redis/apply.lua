-- Applies one batch's mutations of one state shard and moves the shard's progress: both or
-- neither.
--
-- KEYS[1]   the shard's progress: HASH "topic@version/partition" -> position,
--           "offset:epoch:log", see package progress
-- KEYS[2..] the state keys to append to
-- ARGV      the secret with which values are hashed
--           number of partition ranges, and for each: progress field, position before, position after
--           greatest record timestamp in the batch in milliseconds, as far as it is believed
--           (state.MaxAhead)
--           two bytes for each state key that must not be returned as a candidate: its number, from 1
--           number of distinct times to live, and each in seconds, 0 for forever
--           two bytes for each state key: the number of its time to live, from 1, plus 32768 if the
--           key is busy
--           for each state key the bytes to append
--           number of state keys that may be full, and their numbers
--           numbers of the keys whose time to live must be set now. The time to live of a key that
--           the append creates is always set: it was not written yet, or something else
--           deleted it.
-- Returns   if applied: the number of keys that refused the append, the reason of the first one,
--           and for each compaction candidate its number and content. If several calls of a
--           pipeline append to a key, only the last may return it.
--           if not applied, because some position is not the expected one: "found", and the
--           position of each range ("" for none)
--           if not applied, because keys are full and must be compacted first: "full", and for each
--           of them its number and content
--           the error RESHARDING if the shard is frozen, see package progress
--           the error OTHERSECRET if the shard has values that are hashed with another secret: its state cannot be told
--           from what is to be appended
--
-- While the shard is copied, the names of the state keys are added to a set, see keyspace.ChangedKey. It
-- is in the slot of the shard.
--
-- No error may be raised after the first write. That write, to the progress or the set of changed keys, fails for every
-- reason that does not depend on the data: a full memory, a replica, a failing disk. Keys that do not hold a string are
-- counted as refused.

-- Locals are faster than globals.
local pcall, type = redis.pcall, type
local KEYS, ARGV = KEYS, ARGV
local replicate, nowhere, everywhere = redis.set_repl, redis.REPL_NONE, redis.REPL_ALL -- nil if the server has none
if replicate then replicate(everywhere) end -- if the server forbids it, before the first write
local progress, ranges = KEYS[1], tonumber(ARGV[2])
local a = 3 -- index of the next argument to read

local fields, found = {}, {}
for i = 1, ranges do fields[i] = ARGV[a + 3 * (i - 1)] end
fields[ranges + 1], fields[ranges + 2], fields[ranges + 3], fields[ranges + 4], fields[ranges + 5] = 'now', 'lag', 'frozen', 'copying', 'secret'
for first = 1, ranges + 5, maxValues do
  local last = math.min(first + maxValues - 1, ranges + 5)
  local values = call('HMGET', progress, unpack(fields, first, last))
  for i = first, last do found[i] = values[i - first + 1] end
end
if found[ranges + 3] then return redis.error_reply('RESHARDING weir reshard has not finished') end
if found[ranges + 5] and found[ranges + 5] ~= ARGV[1] then
  return redis.error_reply('OTHERSECRET the state was lost, and is written with another secret now')
end
for i = 1, ranges do
  if found[i] ~= ARGV[a + 3 * (i - 1) + 1] then
    local reply = {'found'}
    for j = 1, ranges do reply[j + 1] = found[j] or '' end
    return reply
  end
end
local updates = {} -- fields of the progress and their new values
for i = 1, ranges do
  updates[2 * i - 1], updates[2 * i] = fields[i], ARGV[a + 2]
  a = a + 3
end
local now = ARGV[a]
a = a + 1
if tonumber(now) > tonumber(found[ranges + 1] or '0') then
  updates[2 * ranges + 1], updates[2 * ranges + 2] = 'now', now
  local clock = call('TIME')
  local lag = math.max(0, clock[1] * 1000 + math.floor(clock[2] / 1000) - now)
  if not found[ranges + 2] or lag < tonumber(found[ranges + 2]) then
    updates[2 * ranges + 3], updates[2 * ranges + 4] = 'lag', string.format('%.0f', lag)
  end
end

local exempt = {} -- numbers of the keys that must not be returned as candidates
for i = 1, #ARGV[a], 2 do
  local high, low = byte(ARGV[a], i, i + 1)
  exempt[high * 256 + low] = true
end
a = a + 1

local lifetimes = a -- the argument before the first time to live
a = a + 1 + tonumber(ARGV[a])
local lifetimeOf = ARGV[a]
a = a + 1

local checked = a + #KEYS - 1 -- the argument after the bytes to append
local fullKeys = {'full'}
for i = checked + 1, checked + tonumber(ARGV[checked]) do
  local k = tonumber(ARGV[i])
  local content = full(KEYS[1 + k], #ARGV[a + k - 1])
  if content then
    fullKeys[#fullKeys + 1] = k
    fullKeys[#fullKeys + 1] = content
  end
end
if #fullKeys > 1 then return fullKeys end

if found[ranges + 4] then noteChanged(progress, found[ranges + 4], 2, #KEYS) end
for first = 1, #updates, maxValues do
  call('HSET', progress, unpack(updates, first, math.min(first + maxValues - 1, #updates)))
end

local due = {} -- numbers of the keys whose time to live must be set now
for i = checked + 1 + tonumber(ARGV[checked]), #ARGV do due[tonumber(ARGV[i])] = true end

-- lifetime returns the time to live of a state key in seconds, '0' for forever.
local function lifetime(k)
  local high, low = byte(lifetimeOf, 2 * k - 1, 2 * k)
  return ARGV[lifetimes + high % 128 * 256 + low]
end

-- create creates a state key with its time to live, and reports whether it did: the key may exist.
local function create(k, value)
  local seconds = lifetime(k)
  if seconds == '0' then return false end
  local reply = pcall('SET', KEYS[1 + k], value, 'EX', seconds, 'NX')
  return type(reply) == 'table' and reply.ok ~= nil
end

-- APPEND makes room for as much again as the key then holds, and most keys wait long for their next append. So a key is
-- written once more, which takes only the bytes that it has. That changes nothing, so it goes neither to replicas nor
-- to the append-only file. It costs about a microsecond, for which a short key has too little room, a long one too much
-- to copy, and a busy one soon needs its room.
local minTrimmed, maxTrimmed = 256, 4096

-- trim frees the room that an append has left in a state key of that size.
local function trim(k, size)
  if not replicate or size < minTrimmed or size > maxTrimmed or byte(lifetimeOf, 2 * k - 1) >= 128 then return end
  local key = KEYS[1 + k]
  local value = call('GET', key)
  replicate(nowhere)
  call('SET', key, value, 'KEEPTTL')
  replicate(everywhere)
end

local reply = {0, ''}

-- append appends to a state key. The reply gets the key if it refuses or is a candidate.
local function append(k, appended)
  local key = KEYS[1 + k]
  local size = pcall('APPEND', key, appended)
  if type(size) == 'table' then
    reply[1] = reply[1] + 1
    if reply[1] == 1 then reply[2] = size.err end
    return
  end
  local wasEmpty = size == #appended
  if wasEmpty or due[k] then setLifetime(key, lifetime(k), wasEmpty) end
  if wasEmpty or exempt[k] then return end
  local value = size >= minLength and candidate(key, size, #appended)
  if value then
    reply[#reply + 1] = k
    reply[#reply + 1] = value
  else
    trim(k, size)
  end
end

-- A key whose time to live must be set is usually new. One command then creates it with that time. Two would name it
-- twice in the append-only file.
for k = 1, #KEYS - 1 do
  if not (due[k] and create(k, ARGV[a])) then append(k, ARGV[a]) end
  a = a + 1
end
return reply
