-- Records, in one state shard, which archives a fill over a cut needs, and returns how far it has applied them.
--
-- KEYS[1]  the shard's progress, see find.lua
-- ARGV     the cut, the fill
--          number of fills that have all of its columns and more, and these, the least of them first
--          number of known fills that share no series with it, and these
--          for each archive of the cut: ID, number of rows, since when it has all events in ms
--
-- The fill takes over the position of a fill that has all of its columns. That one then no longer moves: its batches
-- under way find another position, and change nothing. If any other fill of the same series has begun with an archive,
-- it is unknown which rows the columns have, and the position is a moved one. So a column never has two fills that
-- continue.
--
-- Returns  the position of the fill in each archive, or an error ARCHIVE with the ID of an archive
--          of the cut that the shard has and the caller does not know, or the error
--          NOTBEGUN if the shard has not begun

local refusal = frozen() or notBegun()
if refusal then return refusal end

local cut, fill, a = ARGV[1], ARGV[2], 3

local function readList()
  local list = {}
  for i = 1, tonumber(ARGV[a]) do list[i] = ARGV[a + i] end
  a = a + 1 + #list
  return list
end

local before, apart, given, begun = readList(), {}, {}, {}
for _, id in ipairs(readList()) do apart[id] = true end
for i = a, #ARGV, 3 do given[ARGV[i]] = true end
for _, name in ipairs(redis.call('HKEYS', key)) do
  local of, id = string.match(name, '^archive:([^:]+):(.+)$')
  if of == cut and not given[id] then return redis.error_reply('ARCHIVE ' .. id) end
  local other, archive = string.match(name, '^fill:([^:]+):archive:([^/]+)/0$')
  if other and not apart[other] then begun[archive] = true end
end

local function field(of, id) return 'fill:' .. of .. ':archive:' .. id .. '/0' end

-- takeOver returns the position in an archive of a fill that has all columns of this one, and marks that one as moved;
-- nil if none continues.
local function takeOver(id)
  for _, other in ipairs(before) do
    local at = redis.call('HGET', key, field(other, id))
    if at and string.sub(at, -6) ~= ':moved' then
      redis.call('HSET', key, field(other, id), string.match(at, '^%d+') .. ':-1:moved')
      return at
    end
  end
end

local reply = {}
for i = a, #ARGV, 3 do
  local id = ARGV[i]
  redis.call('HSET', key, 'archive:' .. cut .. ':' .. id, ARGV[i + 1] .. ';' .. ARGV[i + 2])
  local at = redis.call('HGET', key, field(fill, id))
  if not at then
    at = takeOver(id) or begun[id] and '0:-1:moved' or '0:-1:'
    redis.call('HSET', key, field(fill, id), at)
  end
  reply[#reply + 1] = at
end
return reply
