-- Replaces the content of state keys by their compaction. The embedded children that a compaction
-- leaves out are appended to their own keys in the same step: they are spilled.
--
-- KEYS      the state keys of one shard to replace, the keys of spilled children, and the shard's
--           progress
-- ARGV      number of state keys to replace, and for each: length of the content that was
--           compacted; its header, "" for none; the length that the header stands for; the rest of
--           that content or its SHA-1; the compacted content; number of its spilled children, and for
--           each of these the bytes to append to its key, its time to live in seconds, 0 for forever,
--           "check" if its key may be full, else "", and whether another plan may need it for longer,
--           see group.others
-- Returns   the number of keys replaced, and for each child's key that is a compaction candidate
--           its number among these keys and its content
--
-- If a key no longer begins with the content that was compacted, another writer has compacted it, or the store has gone
-- back in time. The key is then left unchanged, and its children are not spilled. Bytes appended since the content was
-- read stay after the compacted content. A key is also left unchanged if the key of a child is full, which must be
-- compacted first.
--
-- Calling a command costs as much as reading a key in the CPU's cache. So a short key is read and written whole, by two
-- commands. For a long key, copying its content into Lua costs most: only the bytes after the part that the header
-- identifies are read.
--
-- PERSIST of the progress, which never expires, changes nothing and comes first. When its memory is full, Redis refuses
-- only the first write of a script, and only if that may take memory. So compactions are possible when nothing else can
-- be written, and make room. A key is never deleted before it is set: while its slot moves to another master, Redis
-- sends a key that is missing there, and the script would end without it.
--
-- A child's key that does not hold a string is damaged; state spilled to it is lost.

local sub = string.sub
local reply, n = {0}, tonumber(ARGV[1])

-- wholeLength is the greatest length of a key that is read whole.
local wholeLength = 4096

-- proven says whether the bytes after the part that the header stands for are those that were compacted.
local function proven(rest, proof)
  return proof == rest or #proof ~= #rest and proof == redis.sha1hex(rest)
end

-- appendedSince returns what was appended to a key since its content was read; nil if the key does not begin with that
-- content.
local function appendedSince(key, length, header, from, proof)
  if length <= wholeLength then
    local value = redis.pcall('GET', key)
    if type(value) ~= 'string' or #value < length or sub(value, 1, #header) ~= header then return nil end
    return proven(sub(value, from + 1, length), proof) and sub(value, length + 1) or nil
  end
  local size = redis.pcall('STRLEN', key)
  if type(size) == 'table' or size < length then return nil end
  if header ~= '' and call('GETRANGE', key, 0, #header - 1) ~= header then return nil end
  local rest = from < length and call('GETRANGE', key, from, length - 1) or ''
  return proven(rest, proof) and call('GETRANGE', key, length, -1) or nil
end

-- offer returns the key of a child as a candidate if its content is given, and reports whether it is.
local function offer(child, content)
  if content then
    reply[#reply + 1] = child
    reply[#reply + 1] = content
  end
  return content ~= nil
end

-- needed returns the time to live of a child. Another plan has set the time of its parent's key for the state that it has
-- in the child.
local function needed(seconds, others, parentLeft)
  if others == '' or seconds == '0' then return seconds end
  if parentLeft < 0 then return others == 'forever' and '0' or seconds end
  return parentLeft > tonumber(seconds) and string.format('%d', parentLeft) or seconds
end

-- spill appends sections to the key of a child.
local function spill(child, sections, seconds)
  local key = KEYS[n + child]
  local size = redis.pcall('APPEND', key, sections)
  if type(size) == 'table' then return end
  setLifetime(key, seconds, size == #sections)
  if size >= minLength and size > #sections then offer(child, candidate(key, size, #sections)) end
end

-- While a shard is frozen or being emptied, no state may move from one key to another. The candidates are
-- found again later.
local progress, spills = KEYS[#KEYS], #KEYS > n + 1
local frozen, copying, emptying
if spills then
  frozen, copying, emptying = unpack(call('HMGET', progress, 'frozen', 'copying', 'emptying'))
  if frozen or emptying then return reply end
end
call('PERSIST', progress)

-- fullChild reports whether a child's key is full, and if so returns it as a candidate. The child's arguments begin
-- after index a.
local function fullChild(child, a)
  return ARGV[a + 3] == 'check' and offer(child, full(KEYS[n + child], #ARGV[a + 1]))
end

-- replace replaces the content of a state key, which keeps its time to live. An empty key with a time to live is kept
-- until it expires, because writers rely on having set that time.
local function replace(key, content)
  if content == '' and call('TTL', key) < 0 then
    call('DEL', key)
  else
    call('SET', key, content, 'KEEPTTL')
  end
  reply[1] = reply[1] + 1
end

local a, child = 2, 0 -- index of the next argument to read, number of children before it
for i = 1, n do
  local key, length, from, children = KEYS[i], tonumber(ARGV[a]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 5])
  local appended = appendedSince(key, length, ARGV[a + 1], from, ARGV[a + 3])
  if appended then
    local blocked = false
    for j = 1, children do blocked = fullChild(child + j, a + 1 + 4 * j) or blocked end
    if not blocked then
      local left = children > 0 and call('TTL', key)
      replace(key, ARGV[a + 4] .. appended)
      for j = 1, children do
        local first = a + 2 + 4 * j
        spill(child + j, ARGV[first], needed(ARGV[first + 1], ARGV[first + 3], left))
      end
    end
  end
  a, child = a + 6 + 4 * children, child + children
end
-- While a shard is copied, the keys between which state may have moved are noted as changed. A
-- compaction that moves none changes no answer, so its key need not be copied again.
if copying and reply[1] > 0 then noteChanged(progress, copying, 1, #KEYS - 1) end
return reply
