-- Sets keys of a new shard to the content of the old shard's keys.
--
-- KEYS[1]   progress of the new shard
-- KEYS[2..] its state keys
-- ARGV      token of the process that copies
--           for each state key its content, and its time to live in ms: 0 for forever, "gone" if the
--           old shard has no such key
-- Returns   an error if another process copies the shard now, or it is in use: a process that hung
--           must not overwrite what was applied since.

local call = redis.call
if call('HGET', KEYS[1], 'frozen') ~= ARGV[1] then return redis.error_reply('RESHARDING another weir reshard has begun') end
for i = 2, #KEYS do
  local content, lives = ARGV[2 * i - 2], ARGV[2 * i - 1]
  if lives == 'gone' then
    call('DEL', KEYS[i])
  elseif lives == '0' then
    call('SET', KEYS[i], content)
  else
    call('SET', KEYS[i], content, 'PX', lives)
  end
end
return #KEYS - 1
