-- Finds out whether a key that was appended to is worth compacting, and how long it lives. It
-- is in front of the scripts that append.

local call, byte = redis.call, string.byte

-- Compacting pays where a key has doubled since it was compacted last, by several
-- appends: one that concerns many series is no shorter for being merged with one or
-- two others. A long key is compacted sooner, and whatever the appends, so that it
-- stays bounded: each byte appended still has no more than a few sent for it. How long
-- the key was then is in its header; see package state. A look at that costs more
-- than the append, so there is one where the key has grown by another step, and of a
-- short key it takes all that is needed to compact it.
local few, appends, step, short = 64, 6, 32, 512
local long, growth = 65536, 262144

-- The value of a key of some size, a few at least, that is worth compacting since so many bytes were appended,
-- nil of others.
local function candidate(key, size, appended)
  if size < appends * appended and size < long or size % step >= appended then return nil end
  local value = size <= short and call('GET', key) or call('GETRANGE', key, '0', '3')
  local header, l1, l2, l3 = byte(value, 1, 4)
  local length = 0
  if header == 0 then length = ((l1 % 8 * 256 + l2) * 256 + l3) * 2 ^ math.floor(l1 / 8) end
  if size < length + math.min(length, math.max(growth, length / 2)) then return nil end
  return #value == size and value or call('GET', key)
end

-- Says whether a key lives for less than so many seconds. One that lives forever does not:
-- a plan that is in use may need that. When none is, it is swept; see sweep.go.
local function shorter(key, seconds)
  local left = call('TTL', key)
  return left >= 0 and left < tonumber(seconds)
end
