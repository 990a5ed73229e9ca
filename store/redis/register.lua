-- Registers that a consumer group applies a plan.
--
-- KEYS[1]  the plans in use: HASH "<version>/<group>" -> "<began>:<used>": when a processor of the
--          group last began with the plan, and when one last registered it, in ms
-- ARGV     version; group; "1" if a processor has just begun with the plan; time in ms ("" for now,
--          by the clock of Redis); for how many ms after its last registration a plan is in use
-- Returns  the plans in use with which other groups began later: version, group, when they began
--
-- Versions that are equal up to a "." are plans of the same definitions with other generations of series. A plan keeps
-- the beginning of another one of the same definitions and group.

local key, own, now = KEYS[1], ARGV[1] .. '/' .. ARGV[2], tonumber(ARGV[4])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end

-- definitionsOf returns definitions and group of a field, without the generations.
local function definitionsOf(field)
  local definitions, group = string.match(field, '^([^/.]*)[^/]*(/.*)$')
  return definitions and definitions .. group
end

local all, newest, began, continued = redis.call('HGETALL', key), 0, nil, nil
for i = 1, #all, 2 do
  local at = tonumber(string.match(all[i + 1], '^(%d+):%d+$'))
  if at and at > newest then newest = at end
  if all[i] == own then began = at end
  if at and definitionsOf(all[i]) == definitionsOf(own) and at > (continued or 0) then continued = at end
end
began = began or continued
-- No two plans begin at the same time, even if the clock of a server goes back after a failover.
if ARGV[3] == '1' or not began then began = math.max(now, newest + 1) end
redis.call('HSET', key, own, string.format('%d:%d', began, now))

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
