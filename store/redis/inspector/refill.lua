-- Brings back what was dropped of a state key, in front of what was applied since, and what
-- the keys of children hold, if nothing was dropped or spilled meanwhile.
--
-- KEYS[1]  the state key
-- KEYS[2..] the keys of children
-- ARGV     the loss that is to go, by which is known that nothing was
--          how long the header of the key is, and what stands in its place with what is
--          brought back; "" where more children follow: the loss stays then
--          for each child what its key is to hold and its seconds to live, 0 forever
-- Returns  1, or 0 where the loss is not there: then nothing is done
--
-- Once the loss is gone the same call changes nothing. Until then what it does to children may be
-- done again.

local call = redis.call
local held = call('TYPE', KEYS[1]).ok == 'string' and call('GET', KEYS[1]) or ''
local first, last = string.find(held, ARGV[1], 1, true)
if not first then return 0 end
for i = 2, #KEYS do
  call('SET', KEYS[i], ARGV[2 * i])
  if ARGV[2 * i + 1] ~= '0' then call('EXPIRE', KEYS[i], ARGV[2 * i + 1]) end
end
if ARGV[3] ~= '' then
  call('SET', KEYS[1], ARGV[3] .. string.sub(held, ARGV[2] + 1, first - 1) .. string.sub(held, last + 1), 'KEEPTTL')
end
return 1
