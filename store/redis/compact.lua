-- Puts compacted state in place of what it was made of. What it leaves out of children
-- that were embedded is appended to their own keys in the same step.
--
-- KEYS      state keys of one shard, those of children and, where there are any, the shard's progress
-- ARGV      the number of state keys to be replaced
--           for each: the length of what was compacted, that itself or its SHA-1,
--           the result, and the number of its children that are spilled, for each of
--           which follow what to append to its key and how many seconds that lives, 0 forever
-- Returns   the number of keys that were replaced, and then for each key of a child that is
--           worth compacting its number among those and what it holds
--
-- Where a key no longer begins with what was compacted, another has compacted
-- it, or the store has gone back in time: it stays as it is, and nothing is spilled. What was
-- appended since stays behind the result.
--
-- The key is read by GETEX, which counts as a write: a full memory refuses only the first
-- write of a script, and then only one that may take memory. So what is compacted can
-- be put in its place when nothing else can be written, and makes room.
--
-- A child's key that holds no string is damaged, and lacks what is spilled to it.

local sub = string.sub
local answer, n = {0}, tonumber(ARGV[1])

local function proves(proof, begins)
  return proof == begins or #proof ~= #begins and proof == redis.sha1hex(begins)
end

-- Appends to the key of a child.
local function spill(child, sections, seconds)
  local key = KEYS[n + child]
  local size = redis.pcall('APPEND', key, sections)
  if type(size) == 'table' then return end
  if seconds == '0' then
    call('PERSIST', key)
  elseif size == #sections or shorter(key, seconds) then
    call('EXPIRE', key, seconds)
  end
  local value = size >= few and size > #sections and candidate(key, size, #sections)
  if value then
    answer[#answer + 1] = child
    answer[#answer + 1] = value
  end
end

-- While a shard is copied nothing moves from one key to another. What was found to be worth
-- compacting is found again.
if #KEYS > n and call('HGET', KEYS[#KEYS], 'frozen') then return answer end

local a, child = 2, 0 -- the next argument to read, and the child before it
for i = 1, n do
  local key, length, children = KEYS[i], tonumber(ARGV[a]), tonumber(ARGV[a + 3])
  local held = call('GETEX', key)
  if held and #held >= length and proves(ARGV[a + 1], sub(held, 1, length)) then
    local new = ARGV[a + 2] .. sub(held, length + 1)
    -- A key that expires stays, empty, until it does: writers rely on the time to live
    -- that they gave it.
    if new == '' and call('PTTL', key) < 0 then
      call('DEL', key)
    else
      call('SET', key, new, 'KEEPTTL')
    end
    for j = 1, children do
      spill(child + j, ARGV[a + 2 + 2 * j], ARGV[a + 3 + 2 * j])
    end
    answer[1] = answer[1] + 1
  end
  a, child = a + 4 + 2 * children, child + children
end
return answer
