-- Puts what could be kept of a damaged state key in its place, with a note of what
-- was lost: that of all records that the shard may have applied until now.
--
-- KEYS[1]  the shard's progress
-- KEYS[2]  the state key
-- KEYS[3]  the key of the entity's parent, where it has one that is there
-- ARGV     the SHA-1 of what the key held, or its type where that is not a string
--          what comes before the moment of the loss, and behind it
--          the number of digits of the moment
--          seconds to live, 0 forever
--          the SHA-1 of what the parent's key held, and what it is to hold: all but the entity's
-- Returns  the moment, and the fields and values of the progress; nothing where a key has
--          changed: then nothing is done
--
-- The key is deleted first. A full memory refuses no write after that, which
-- here takes less than was there.

local call = redis.call
-- The shard is being copied, see package reshard.
if call('HGET', KEYS[1], 'frozen') then return redis.error_reply('RESHARDING weir reshard has not finished') end

local function is(key, proof)
  local found = call('TYPE', key).ok
  if found == 'string' then found = redis.sha1hex(call('GET', key)) end
  return found == proof
end
if not is(KEYS[2], ARGV[1]) or KEYS[3] and not is(KEYS[3], ARGV[6]) then return {} end

local now = call('HGET', KEYS[1], 'now') or '0'
call('DEL', KEYS[2])
call('SET', KEYS[2], ARGV[2] .. string.rep('0', tonumber(ARGV[4]) - #now) .. now .. ARGV[3])
if ARGV[5] ~= '0' then call('EXPIRE', KEYS[2], ARGV[5]) end
if KEYS[3] then call('SET', KEYS[3], ARGV[7], 'KEEPTTL') end
return {now, call('HGETALL', KEYS[1])}
