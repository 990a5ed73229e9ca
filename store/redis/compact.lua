-- Replaces the content of state keys by their compaction. The embedded children that a compaction
-- leaves out are appended to their own keys in the same step: they are spilled.
--
-- KEYS      the state keys of one shard to replace, the keys of spilled children and, if there are
--           any, the shard's progress
-- ARGV      number of state keys to replace, and for each: length of the content that was
--           compacted; its header, "" for none; the length that the header stands for; the rest of
--           that content or its SHA-1; the compacted content; number of its spilled children, and for
--           each of these the bytes to append to its key, its time to live in seconds, 0 for forever,
--           and "check" if its key may be full, else ""
-- Returns   the number of keys replaced, and for each child's key that is a compaction candidate
--           its number among these keys and its content
--
-- If a key no longer begins with the content that was compacted, another writer has compacted it, or
-- the store has gone back in time. The key then stays as it is, and its children are not spilled.
-- Bytes appended since the content was read stay after the compacted content. It also stays as it is
-- if the key of a child is full: that must be compacted first.
--
-- The content is long, and each copy of it in Lua costs more than all else. So only what is behind
-- the part that the header stands for is read.
--
-- PERSIST comes before the key is set, and the time to live is set again. With a full memory Redis
-- refuses only the first write of a script, and only if that may take memory. So a compaction goes
-- through when nothing else can be written, and makes room. The key is never deleted before it is
-- set: while its slot moves to another master, Redis sends a key that is missing there, and the
-- script would end without it.
--
-- A child's key that does not hold a string is damaged; what is spilled to it is lost.

local reply, n = {0}, tonumber(ARGV[1])

-- begins says whether a key begins with the content that was compacted, given the arguments about it.
local function begins(key, length, header, from, proof)
  local size = redis.pcall('STRLEN', key)
  if type(size) == 'table' or size < length then return false end
  if header ~= '' and call('GETRANGE', key, 0, #header - 1) ~= header then return false end
  local rest = from < length and call('GETRANGE', key, from, length - 1) or ''
  return proof == rest or #proof ~= #rest and proof == redis.sha1hex(rest)
end

-- offer returns the key of a child as a candidate, if its content is given. It says whether it is.
local function offer(child, content)
  if content then
    reply[#reply + 1] = child
    reply[#reply + 1] = content
  end
  return content ~= nil
end

-- spill appends sections to the key of a child.
local function spill(child, sections, seconds)
  local key = KEYS[n + child]
  local size = redis.pcall('APPEND', key, sections)
  if type(size) == 'table' then return end
  if seconds == '0' then
    call('PERSIST', key)
  elseif size == #sections or expiresWithin(key, seconds) then
    call('EXPIRE', key, seconds)
  end
  if size >= minLength and size > #sections then offer(child, candidate(key, size, #sections)) end
end

-- While a shard is frozen, no state may move from one key to another. The candidates are found
-- again later.
local frozen, copying
if #KEYS > n then
  frozen, copying = unpack(call('HMGET', KEYS[#KEYS], 'frozen', 'copying'))
  if frozen then return reply end
end

-- fullChild says whether a child's key is full, and returns it as a candidate then. The child's
-- arguments begin after index a.
local function fullChild(child, a)
  return ARGV[a + 3] == 'check' and offer(child, full(KEYS[n + child], #ARGV[a + 1]))
end

-- replace replaces the first bytes of a state key.
local function replace(key, length, content)
  local appended, left = call('GETRANGE', key, length, -1), call('PTTL', key)
  call('PERSIST', key)
  -- An empty key that has a time to live is kept until it expires, because writers rely on the
  -- time to live that they gave it.
  if left >= 0 then
    call('SET', key, content, 'PX', string.format('%.0f', math.max(left, 1)))
  elseif content ~= '' or appended ~= '' then
    call('SET', key, content)
  else
    call('DEL', key)
  end
  if appended ~= '' then call('APPEND', key, appended) end
  reply[1] = reply[1] + 1
end

local a, child = 2, 0 -- index of the next argument to read, number of children before it
for i = 1, n do
  local key, length, from, children = KEYS[i], tonumber(ARGV[a]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 5])
  if begins(key, length, ARGV[a + 1], from, ARGV[a + 3]) then
    local blocked = false
    for j = 1, children do blocked = fullChild(child + j, a + 2 + 3 * j) or blocked end
    if not blocked then
      replace(key, length, ARGV[a + 4])
      for j = 1, children do spill(child + j, unpack(ARGV, a + 3 + 3 * j, a + 4 + 3 * j)) end
    end
  end
  a, child = a + 6 + 3 * children, child + children
end
-- While a shard is copied, the keys between which state may have moved are noted as changed. A
-- compaction that moves none changes no answer, so its key need not be copied again.
if copying and reply[1] > 0 then noteChanged(KEYS[#KEYS], copying, 1, #KEYS - 1) end
return reply
