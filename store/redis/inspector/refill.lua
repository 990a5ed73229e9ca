-- Restores what was dropped from a state key, before what was applied since, and sets the keys of its children, unless
-- the key was dropped again or its children were spilled meanwhile.
--
-- KEYS[1]   the shard's progress
-- KEYS[2]   the state key
-- KEYS[3..] the keys of children
-- ARGV      the section of the loss to remove, with its mark: if it is there, nothing was dropped
--           or spilled
--           length of the key's header
--           what replaces the header: a header, and the state brought back; "" if more children
--           follow in another call, and then the loss stays
--           for each child the new content of its key, and its time to live in seconds, 0 for forever
-- Returns   1; 0 if the loss is not there, and then nothing is done
--
-- Once the loss is removed, the same call changes nothing. Until then it may be repeated.

local call = redis.call
-- The shard is being copied, see package reshard.
if call('HGET', KEYS[1], 'frozen') or call('HGET', KEYS[1], 'copying') then return redis.error_reply('RESHARDING weir reshard has not finished') end
-- A walk deletes the state keys of the shard, and must not miss one, see ../empty.lua.
if call('HGET', KEYS[1], 'emptying') then return redis.error_reply('EMPTYING the shard has lost its progress and is being emptied') end
local content = call('TYPE', KEYS[2]).ok == 'string' and call('GET', KEYS[2]) or ''
local first, last = string.find(content, ARGV[1], 1, true)
if not first then return 0 end
for i = 3, #KEYS do
  call('SET', KEYS[i], ARGV[2 * i - 2])
  if ARGV[2 * i - 1] ~= '0' then call('EXPIRE', KEYS[i], ARGV[2 * i - 1]) end
end
if ARGV[3] ~= '' then
  call('SET', KEYS[2], ARGV[3] .. string.sub(content, ARGV[2] + 1, first - 1) .. string.sub(content, last + 1), 'KEEPTTL')
end
return 1
