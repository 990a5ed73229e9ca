-- Puts what could be kept of a damaged state key in its place, with a note of what
-- was lost: that of all records that the shard may have applied until now.
--
-- KEYS[1]  the shard's progress
-- KEYS[2]  the state key
-- ARGV     the SHA-1 of what the key held, or its type where that is no string
--          what comes before the moment of the loss, and behind it
--          the number of digits of the moment
--          seconds to live, 0 for ever
-- Returns  the moment, "" where the key has changed: then nothing is done
--
-- The key is deleted first. A full memory refuses no write after that, which
-- here takes less than was there.

local call = redis.call
local found = call('TYPE', KEYS[2]).ok
if found == 'string' then found = redis.sha1hex(call('GET', KEYS[2])) end
if found ~= ARGV[1] then return '' end

local now = call('HGET', KEYS[1], 'now') or '0'
call('DEL', KEYS[2])
call('SET', KEYS[2], ARGV[2] .. string.rep('0', tonumber(ARGV[4]) - #now) .. now .. ARGV[3])
if ARGV[5] ~= '0' then call('EXPIRE', KEYS[2], ARGV[5]) end
return now
