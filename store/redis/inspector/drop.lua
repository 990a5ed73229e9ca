-- Replaces a damaged state key by the sections that can be read and a loss: a note that the rest was lost, for all
-- records that the shard may have applied until now.
--
-- KEYS[1]  the shard's progress
-- KEYS[2]  the state key
-- KEYS[3]  the key of the entity's parent, if it has one that exists
-- ARGV     SHA-1 of the content of the key, or its type if it is not a string
--          new content before the moment of the loss, and after it
--          number of digits of the moment
--          time to live in seconds, 0 for forever
--          SHA-1 of the content of the parent's key, and its new content, without the entity
-- Returns  the moment in ms, and the fields and values of the progress; an empty list if a key has
--          changed, and then nothing is done
--
-- The time to live is never shortened: other definitions may keep for longer what is kept of the key.
--
-- PERSIST comes first: after it, Redis refuses no write for lack of memory, and the new content is shorter. If the key
-- were deleted first, it would be missing in a slot that moves, and the script would end.

local call = redis.call
-- The shard is being copied, see package reshard.
if call('HGET', KEYS[1], 'frozen') or call('HGET', KEYS[1], 'copying') then return redis.error_reply('RESHARDING weir reshard has not finished') end
-- A walk deletes the state keys of the shard, and must not miss one, see ../empty.lua.
if call('HGET', KEYS[1], 'emptying') then return redis.error_reply('EMPTYING the shard has lost its progress and is being emptied') end

local function unchanged(key, proof)
  local found = call('TYPE', key).ok
  if found == 'string' then found = redis.sha1hex(call('GET', key)) end
  return found == proof
end
if not unchanged(KEYS[2], ARGV[1]) or KEYS[3] and not unchanged(KEYS[3], ARGV[6]) then return {} end

local now = call('HGET', KEYS[1], 'now') or '0'
local seconds, left = tonumber(ARGV[5]), call('TTL', KEYS[2])
if left == -1 and call('TYPE', KEYS[2]).ok == 'string' then seconds = 0 end
call('PERSIST', KEYS[2])
call('SET', KEYS[2], ARGV[2] .. string.rep('0', tonumber(ARGV[4]) - #now) .. now .. ARGV[3])
if seconds > 0 then call('EXPIRE', KEYS[2], math.max(seconds, left)) end
if KEYS[3] then call('SET', KEYS[3], ARGV[7], 'KEEPTTL') end
return {now, call('HGETALL', KEYS[1])}
