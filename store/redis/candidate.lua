-- Shared by the scripts that append to state keys: apply.lua and compact.lua begin with it. It decides whether a key is
-- worth compacting or full, sets the time to live of keys, and records which keys change while a shard is copied.

local call, byte = redis.call, string.byte

-- A key is worth compacting once several appends have doubled its length since the last compaction: one append to many
-- series hardly shrinks when it is merged with one or two others. A long key is compacted earlier, after any number of
-- appends, so that it stays bounded; each byte appended still causes only a few bytes to be sent. The length after the
-- last compaction is in the key's header, see package state/packed. Reading the header costs more than the append, so
-- it is read only when the key has grown past another multiple of checkEvery. A short key is read whole at once, since
-- it will be compacted.
local minLength, minAppends, checkEvery, shortLength = 64, 5, 32, 512
local longLength, maxGrowth = 65536, 262144

-- compactedLength returns the length of a key of that size after its last compaction, given its first four bytes; 0 if
-- it was never compacted. Bytes are no header if they state more than the size, rounded up to the next unit.
local function compactedLength(header, size)
  local first, l1, l2, l3 = byte(header, 1, 4)
  if first ~= 0 or not l3 then return 0 end
  local unit = 2 ^ math.floor(l1 / 8)
  local length = ((l1 % 8 * 256 + l2) * 256 + l3) * unit
  return length - unit < size and length or 0
end

-- candidate returns the content of a key if the key is worth compacting, else nil. The key has
-- that size, at least minLength, of which the given number of bytes was appended last.
local function candidate(key, size, appended)
  if size < minAppends * appended and size < longLength or size % checkEvery >= appended then return nil end
  local value = size <= shortLength and call('GET', key) or call('GETRANGE', key, '0', '3')
  local length = compactedLength(value, size)
  if size < length + math.min(length, math.max(maxGrowth, length / 2)) then return nil end
  return #value == size and value or call('GET', key)
end

-- A key may grow by this many bytes until its next compaction. Since that leaves at most 500 KiB by
-- default, see features/bounds.go, keys take at most 960 KiB.
local maxAppended = 471040

-- full returns the content of a key that must be compacted before that many bytes are appended, else nil. A key that
-- was just compacted takes any number of bytes: compacting it again would make no room.
local function full(key, appended)
  local size = redis.pcall('STRLEN', key)
  if type(size) == 'table' or size + appended <= maxAppended then return nil end
  local length = compactedLength(call('GETRANGE', key, '0', '3'), size)
  if size + appended <= length + maxAppended or size < length + longLength then return nil end
  return call('GET', key)
end

-- The greatest number of values passed to a command at once: Lua's unpack is limited to some
-- thousand.
local maxValues = 1000

-- noteChanged adds keys, by number, to the set of keys that changed while the process with a token copies the shard,
-- see package reshard.
local function noteChanged(progress, token, first, last)
  local changed = string.sub(progress, 1, -1 - #'progress') .. 'changed/' .. token
  for i = first, last, maxValues do
    call('SADD', changed, unpack(KEYS, i, math.min(i + maxValues - 1, last)))
  end
end

-- setLifetime sets the time to live of a key in seconds, '0' for forever, after an append. It never shortens one: another
-- plan that is in use may keep the key for longer. It may also need a key without a time to live forever, unless there was
-- nothing in the key before the append; if no plan does, the key is swept, see sweep.go. A key with nothing in it may be
-- one that a compaction has left, with a time to live.
local function setLifetime(key, seconds, wasEmpty)
  if seconds == '0' then
    call('PERSIST', key)
    return
  end
  local left = call('TTL', key)
  if left < tonumber(seconds) and (left >= 0 or wasEmpty) then call('EXPIRE', key, seconds) end
end
