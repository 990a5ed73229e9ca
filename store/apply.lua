-- Applies one batch's operations of one state shard and moves the shard's
-- progress, both or neither.
--
-- KEYS[1]   the shard's progress: HASH "topic/partition" -> next offset to apply
-- KEYS[2..] the state keys touched
-- ARGV      n, then n times: progress field, from, to
--           the greatest record timestamp in the batch, in milliseconds
--           m, then m times: series id, first tile still kept; -1 not to prune
--           then for each state key: seconds to live (0: for ever), and runs of
--             + n (field, amount)*            add integers to hash fields
--             f n (field, amount)*            add floats to hash fields
--             < n (field, value)*             keep the lesser in hash fields
--             > n (field, value)*             keep the greater in hash fields
--             m n first (member, tile)*       note the tiles in which members were met
--             h n (value)*                    add to a HyperLogLog
--             z n max first (time, member)*   note when members were last met
--             a max first records             append records to a log
--           ended by "."
-- Returns   applied: the number of operations refused, then the first reason
--           not applied, since the progress found is not `from` for each
--           partition: "found", then the n offsets found ("" where there is none)
--
-- Nothing may raise an error once something was written: the first write, to
-- the progress, meets every refusal that does not depend on the data (a full
-- memory, a replica, a failing disk); a state operation that is refused because
-- of its data (an integer that overflows, a key of another type, a value that
-- this script cannot have written) is counted.

local protect, call, pcall = pcall, redis.call, redis.pcall
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
if tonumber(now) > tonumber(found[n + 1] or '0') then
  moved[2 * n + 1], moved[2 * n + 2] = 'now', now
end
call('HSET', progress, unpack(moved))

local kept, prune = {}, tonumber(ARGV[a + 1])
a = a + 2
for _ = 1, prune do
  kept[ARGV[a]] = tonumber(ARGV[a + 1])
  a = a + 2
end
prune = prune >= 0

local refused, reason = 0, ''
local function refuse(why)
  refused = refused + 1
  if refused == 1 then reason = why end
  return nil
end

-- try asks Redis; nil is a refusal.
local function try(...)
  local reply = pcall(...)
  if type(reply) == 'table' and reply.err then return refuse(reply.err) end
  return reply
end

-- guard calls a function that looks into what a key holds.
local function guard(f, ...)
  local ok, result = protect(f, ...)
  if not ok then return refuse(tostring(result)) end
  return result
end

-- less compares decimal numbers, and exactly integers beyond 2^53.
local function less(x, y)
  local p, q = tonumber(x), tonumber(y)
  if p ~= q or x == y then return p < q end
  if #x ~= #y then return (#x < #y) == (p > 0) end
  return (x < y) == (p > 0)
end

-- A member's tiles stand as the newest one and the gaps to the older ones:
-- "17737,1,3" is 17737, 17736 and 17733. met adds one and drops those before
-- `first`; it returns nil where nothing changes.
local function met(tiles, tile, first)
  if not tiles then return tile end
  if tiles == tile then return nil end
  local list, at, t = {}, nil, tonumber(tile)
  for gap in string.gmatch(tiles, '[^,]+') do
    at = at and at - tonumber(gap) or tonumber(gap)
    if at == t then return nil end
    list[#list + 1] = at
  end
  list[#list + 1] = t
  table.sort(list, function(x, y) return x > y end)
  local out = {string.format('%d', list[1])}
  for i = 2, #list do
    if list[i] < first then break end
    out[i] = string.format('%d', list[i - 1] - list[i])
  end
  return table.concat(out, ',')
end

-- sweep deletes what is stale of a hash: of a small one in one go, of a large
-- one a bounded step at a time, with the walk's cursor in the field "\0" until
-- it is through. A hash of a few fields costs more to look through than it
-- takes in memory. `ask` is HKEYS where fields alone tell what is stale.
local function sweep(key, ask, stale)
  local size, old = call('HLEN', key), {}
  if size <= 8 then return end
  if size <= 256 then
    local held, step = call(ask, key), ask == 'HKEYS' and 1 or 2
    for i = 1, #held, step do
      if held[i] == '\0' or stale(held[i], held[i + 1]) then old[#old + 1] = held[i] end
    end
    if #old > 0 then call('HDEL', key, unpack(old)) end
    return
  end
  local cursor = call('HGET', key, '\0') or '0'
  local reply = call('HSCAN', key, cursor, 'COUNT', 100)
  for i = 1, #reply[2], 2 do
    if #old < 1000 and stale(reply[2][i], reply[2][i + 1]) then old[#old + 1] = reply[2][i] end
  end
  if #old > 0 then call('HDEL', key, unpack(old)) end
  if reply[1] ~= '0' then
    call('HSET', key, '\0', reply[1])
  elseif cursor ~= '0' then
    call('HDEL', key, '\0')
  end
end

local function stale_tile(field)
  local first = kept[string.sub(field, 1, 5)]
  return first and tonumber(string.sub(field, 6), 36) < first
end

-- A log begins with a header: its version, and in 6 bytes the greatest time
-- that was cut off because of `most`. Its records are their length as a varint,
-- their time in 6 bytes, and what concerns nobody here.
local LOG_HEADER = '\1\0\0\0\0\0\0'

local function log_time(log, at)
  local b1, b2, b3, b4, b5, b6 = string.byte(log, at, at + 5)
  return ((((b1 * 256 + b2) * 256 + b3) * 256 + b4) * 256 + b5) * 256 + b6
end

-- trim drops the records at a log's front that came before `first`, in
-- milliseconds, and of more than `most` those that were appended earliest.
local function trim(key, most, first)
  local log = call('GET', key)
  local starts, n, at = {}, 0, 8
  while at <= #log do
    n = n + 1
    starts[n] = at
    local size, shift, byte = 0, 1, nil
    repeat
      byte = string.byte(log, at)
      size = size + byte % 128 * shift
      shift, at = shift * 128, at + 1
    until byte < 128
    starts[-n] = at -- of the time
    at = at + size
  end
  local kept = 1
  while kept <= n and log_time(log, starts[-kept]) < first + 2 ^ 47 do kept = kept + 1 end
  local cut, cut_at = log_time(log, 2), 2
  while n - kept + 1 > most do
    local t = log_time(log, starts[-kept])
    if t > cut then cut, cut_at = t, starts[-kept] end
    kept = kept + 1
  end
  if kept == 1 then return end
  local header = string.sub(log, 1, 1) .. string.sub(log, cut_at, cut_at + 5)
  call('SET', key, header .. string.sub(log, starts[kept] or #log + 1))
end

for k = 2, #KEYS do
  local key, ttl, run = KEYS[k], ARGV[a], ARGV[a + 1]
  local grown, stale = false, nil
  a = a + 2
  while run ~= '.' do
    local count = tonumber(ARGV[a])
    a = a + 1
    if run == 'a' then
      local records = ARGV[a + 1]
      local size = try('APPEND', key, records)
      if size == #records then call('SET', key, LOG_HEADER .. records) end
      if size and prune then guard(trim, key, count, tonumber(ARGV[a])) end
      grown = size ~= nil
      a = a + 2
    elseif run == '+' then
      for i = a, a + 2 * count - 1, 2 do
        local sum = try('HINCRBY', key, ARGV[i], ARGV[i + 1])
        if sum == tonumber(ARGV[i + 1]) then grown, stale = true, stale_tile end
      end
      a = a + 2 * count
    elseif run == 'f' then
      for i = a, a + 2 * count - 1, 2 do
        local sum = try('HINCRBYFLOAT', key, ARGV[i], ARGV[i + 1])
        if sum and tonumber(sum) == tonumber(ARGV[i + 1]) then grown, stale = true, stale_tile end
      end
      a = a + 2 * count
    elseif run == '<' or run == '>' then
      for i = a, a + 2 * count - 1, 2 do
        local old, new = try('HGET', key, ARGV[i]), ARGV[i + 1]
        if old == false then grown, stale = true, stale_tile end
        if old == false or old and (run == '<' and guard(less, new, old) or run == '>' and guard(less, old, new)) then
          try('HSET', key, ARGV[i], new)
        end
      end
      a = a + 2 * count
    elseif run == 'm' then
      local first = tonumber(ARGV[a])
      for i = a + 1, a + 2 * count, 2 do
        local old = try('HGET', key, ARGV[i])
        local tiles = old ~= nil and guard(met, old, ARGV[i + 1], first)
        if tiles then
          try('HSET', key, ARGV[i], tiles)
          grown = true
          stale = function(field, held)
            return field ~= '\0' and tonumber(string.match(held, '^[^,]+')) < first
          end
        end
      end
      a = a + 1 + 2 * count
    elseif run == 'h' then
      if try('PFADD', key, unpack(ARGV, a, a + count - 1)) == 1 then grown = true end
      a = a + count
    else -- z
      local most, first = tonumber(ARGV[a]), ARGV[a + 1]
      local added = try('ZADD', key, 'GT', unpack(ARGV, a + 2, a + 1 + 2 * count))
      if added and added > 0 then
        if prune and first ~= '' then call('ZREMRANGEBYSCORE', key, '-inf', '(' .. first) end
        call('ZREMRANGEBYRANK', key, 0, -1 - most)
      end
      grown = added ~= nil
      a = a + 2 + 2 * count
    end
    run = ARGV[a]
    a = a + 1
  end
  if grown and ttl ~= '0' then call('EXPIRE', key, ttl) end
  if prune and stale then guard(sweep, key, stale == stale_tile and 'HKEYS' or 'HGETALL', stale) end
end

if refused > 0 then return {refused, reason} end
return {0}
