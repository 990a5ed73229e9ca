-- Reads the record of a shard to change it.
--
-- KEYS[1]  the record
-- ARGV     run of the server that it must be read from ("" for any)
-- Returns  the time of Redis in ms, then fields and values; or an error RESHARDING or OTHERRUN

local refusal = frozen(KEYS[1]) or otherRun(ARGV[1])
if refusal then return refusal end

local reply = redis.call('HGETALL', KEYS[1])
table.insert(reply, 1, clock())
return reply
