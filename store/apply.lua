-- Applies one batch's operations of one state shard and moves the shard's
-- progress, both or neither.
--
-- KEYS[1]   the shard's progress: HASH "topic/partition" -> next offset to apply
-- KEYS[2..] the state keys touched
-- ARGV      n, then n times: progress field, from, to
--           the greatest record timestamp in the batch, in milliseconds
--           for each state key what to append to it
--           then for some of them: the number of the key, seconds to live
-- Returns   applied: the number of keys refused, the first reason, and then the
--           numbers of the keys that are worth compacting
--           not applied, since the progress found is not `from` for each
--           partition: "found", then the n offsets found ("" where there is none)
--
-- Nothing may raise an error once something was written: the first write, to
-- the progress, meets every refusal that does not depend on the data (a full
-- memory, a replica, a failing disk); a key that holds no string is counted.

local call, pcall, byte = redis.call, redis.pcall, string.byte
local progress, n = KEYS[1], tonumber(ARGV[1])
local a = 2 -- the next argument to read

local fields = {}
for i = 1, n do fields[i] = ARGV[a + 3 * (i - 1)] end
fields[n + 1] = 'now'
local found = call('HMGET', progress, unpack(fields))
for i = 1, n do
  if found[i] ~= ARGV[a + 3 * (i - 1) + 1] then
    local answer = {'found'}
    for j = 1, n do answer[j + 1] = found[j] or '' end
    return answer
  end
end
local moved = {}
for i = 1, n do
  moved[2 * i - 1], moved[2 * i] = fields[i], ARGV[a + 2]
  a = a + 3
end
local now = ARGV[a]
a = a + 1
if tonumber(now) > tonumber(found[n + 1] or '0') then
  moved[2 * n + 1], moved[2 * n + 2] = 'now', now
end
call('HSET', progress, unpack(moved))

-- Compacting pays where a key has doubled since it was compacted last. How long
-- it was then stands in its header; see package state. Reading that costs as much
-- as the append, so it is read, and the doubling seen, by steps.
local few, step = 96, 32
local function doubled(key, size)
  local header, l1, l2, l3 = byte(call('GETRANGE', key, '0', '3'), 1, 4)
  local length = 0
  if header == 0 then length = (l1 * 256 + l2) * 256 + l3 end
  return size >= 2 * length
end

local answer = {0, ''}
for k = 2, #KEYS do
  local appended = ARGV[a]
  local size = pcall('APPEND', KEYS[k], appended)
  a = a + 1
  if type(size) == 'table' then
    answer[1] = answer[1] + 1
    if answer[1] == 1 then answer[2] = size.err end
  elseif size >= few and size % step < #appended and doubled(KEYS[k], size) then
    answer[#answer + 1] = k - 1
  end
end
while a < #ARGV do
  call('EXPIRE', KEYS[1 + ARGV[a]], ARGV[a + 1])
  a = a + 2
end
return answer
