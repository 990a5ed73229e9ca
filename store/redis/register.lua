-- Notes that a consumer group applies a plan.
--
-- KEYS[1]  who applies what: HASH "<version>/<group>" -> "<began>:<used>": when a processor of the
--          group began last with the plan of the version, and when one said last that it applies it, in ms
-- ARGV     version, group, "1" if a processor has just begun with the plan, the moment in ms ("" for
--          now, by Redis' clock), for how many ms after a plan was used last it is in use
--
-- A plan of the same definitions as another one of the group, which keeps other generations, goes
-- on with when that began: versions are equal then up to a '.'.
--
-- Returns  for each plan in use that another group began with later: version, group, when

local key, mine, now = KEYS[1], ARGV[1] .. '/' .. ARGV[2], tonumber(ARGV[4])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end

local function alike(field)
  local definitions, group = string.match(field, '^([^/.]*)[^/]*(/.*)$')
  return definitions and definitions .. group
end

local all, newest, began, before = redis.call('HGETALL', key), 0, nil, nil
for i = 1, #all, 2 do
  local at = tonumber(string.match(all[i + 1], '^(%d+):%d+$'))
  if at and at > newest then newest = at end
  if all[i] == mine then began = at end
  if at and alike(all[i]) == alike(mine) and at > (before or 0) then before = at end
end
began = began or before
-- No two begin at the same moment, whatever the clocks of servers that took each other's place.
if ARGV[3] == '1' or not began then began = math.max(now, newest + 1) end
redis.call('HSET', key, mine, string.format('%d:%d', began, now))

local rivals = {}
for i = 1, #all, 2 do
  local version, group = string.match(all[i], '^([^/]*)/(.*)$')
  local at, used = string.match(all[i + 1], '^(%d+):(%d+)$')
  if version and at and version ~= ARGV[1] and group ~= ARGV[2] and tonumber(at) > began and now - used < tonumber(ARGV[5]) then
    rivals[#rivals + 1] = version
    rivals[#rivals + 1] = group
    rivals[#rivals + 1] = at
  end
end
return rivals
