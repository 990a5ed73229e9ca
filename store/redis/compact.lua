-- Puts compacted state in the place of what it was made of.
--
-- KEYS      state keys of one shard
-- ARGV      for each: the length of what was compacted, that itself or its SHA-1,
--           the result
-- Returns   the number of keys that were replaced
--
-- Where a key no longer begins with what was compacted, another has compacted
-- it, or the store has gone back in time: it stays as it is. What was appended
-- since stays behind the result.
--
-- The key is read by GETEX, which counts as a write: a full memory refuses only the first
-- write of a script, and then only one that may take memory. So what is compacted can
-- be put in its place when nothing else can be written, and makes room.

local call, sub = redis.call, string.sub
local replaced = 0

local function proves(proof, begins)
  return proof == begins or #proof ~= #begins and proof == redis.sha1hex(begins)
end

for i = 1, #KEYS do
  local key, length = KEYS[i], tonumber(ARGV[3 * i - 2])
  local held = call('GETEX', key)
  if held and #held >= length and proves(ARGV[3 * i - 1], sub(held, 1, length)) then
    local new = ARGV[3 * i] .. sub(held, length + 1)
    -- A key that expires stays, empty, until it does: writers rely on the time to live
    -- that they gave it.
    if new == '' and call('PTTL', key) < 0 then
      call('DEL', key)
    else
      call('SET', key, new, 'KEEPTTL')
    end
    replaced = replaced + 1
  end
end
return replaced
