-- Applies one batch's operations of one state shard and moves the shard's
-- progress, both or neither.
--
-- KEYS[1]   the shard's progress: HASH "topic@version/partition" -> position, which is
--           offset:epoch:log, see find.lua
-- KEYS[2..] the state keys touched
-- ARGV      n, then n times: progress field, from, to
--           the greatest record timestamp in the batch, in milliseconds, as far as it is believed (state.MaxAhead)
--           how many state keys are not to be handed out, and their numbers
--           how many times to live there are, and each of them, in seconds, 0 forever
--           two bytes for each state key: which of these is its own, from 1
--           for each state key what to append to it
--           the numbers of the keys whose time to live is to be set. That of a key which
--           was not there, as nobody has written it yet or something else has deleted it,
--           is set in any case.
-- Returns   applied: the number of keys refused, the first reason, and then for
--           each key that is worth compacting its number and what it holds. A key
--           that several calls of a batch append to is handed out by the first.
--           an error RESHARDING where the shard is frozen, see find.lua
--           not applied, since the position found is not `from` for each
--           partition: "found", then the n positions found ("" where there is none)
--
-- Nothing may raise an error once something was written: the first write, to
-- the progress, meets every refusal that does not depend on the data (a full
-- memory, a replica, a failing disk); a key that holds no string is counted.

-- Locals are found sooner than what is global.
local pcall, type = redis.pcall, type
local KEYS, ARGV = KEYS, ARGV
local progress, n = KEYS[1], tonumber(ARGV[1])
local a = 2 -- the next argument to read

-- Lua passes no more than some thousand values at once.
local most = 1000

local fields, found = {}, {}
for i = 1, n do fields[i] = ARGV[a + 3 * (i - 1)] end
fields[n + 1], fields[n + 2], fields[n + 3] = 'now', 'lag', 'frozen'
for first = 1, n + 3, most do
  local last = math.min(first + most - 1, n + 3)
  local some = call('HMGET', progress, unpack(fields, first, last))
  for i = first, last do found[i] = some[i - first + 1] end
end
-- The shard is being copied, see package reshard.
if found[n + 3] then return redis.error_reply('RESHARDING weir reshard has not finished') end
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
  local clock = call('TIME')
  local lag = math.max(0, clock[1] * 1000 + math.floor(clock[2] / 1000) - now)
  if not found[n + 2] or lag < tonumber(found[n + 2]) then
    moved[2 * n + 3], moved[2 * n + 4] = 'lag', string.format('%.0f', lag)
  end
end
for first = 1, #moved, most do
  call('HSET', progress, unpack(moved, first, math.min(first + most - 1, #moved)))
end

local spared = {} -- keys that are not to be handed out
for i = 1, tonumber(ARGV[a]) do spared[tonumber(ARGV[a + i])] = true end
a = a + 1 + tonumber(ARGV[a])

local lives = a -- the argument before the first time to live
a = a + 1 + tonumber(ARGV[a])
local lifeOf = ARGV[a]
a = a + 1

-- A time to live is not made shorter: another plan may keep the key for longer, or forever.
local function expires(k, fresh)
  local high, low = byte(lifeOf, 2 * k - 1, 2 * k)
  local seconds = ARGV[lives + high * 256 + low]
  if seconds == '0' then
    if not fresh then call('PERSIST', KEYS[1 + k]) end
  elseif fresh or shorter(KEYS[1 + k], seconds) then
    call('EXPIRE', KEYS[1 + k], seconds)
  end
end

local answer, made = {0, ''}, {}
for k = 2, #KEYS do
  local key, appended = KEYS[k], ARGV[a]
  local size = pcall('APPEND', key, appended)
  a = a + 1
  if size == #appended then
    made[k - 1] = true
    expires(k - 1, true)
  elseif type(size) == 'table' then
    answer[1] = answer[1] + 1
    if answer[1] == 1 then answer[2] = size.err end
  elseif size >= few and not spared[k - 1] then
    local value = candidate(key, size, #appended)
    if value then
      answer[#answer + 1] = k - 1
      answer[#answer + 1] = value
    end
  end
end
for i = a, #ARGV do
  local k = tonumber(ARGV[i])
  if not made[k] then expires(k, false) end
end
return answer
