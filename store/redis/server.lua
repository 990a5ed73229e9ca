-- What the scripts about records share: record.lua, change.lua and empty.lua begin with it.

-- frozen returns the error of a frozen shard, see package reshard, false for any other.
local function frozen(record)
  return redis.call('HGET', record, 'frozen') and redis.error_reply('RESHARDING weir reshard has not finished')
end

-- runOfServer returns the ID of this run of the server, nil if the server does not say it: that of the demo does not.
local function runOfServer()
  local about = redis.pcall('INFO', 'server')
  return type(about) == 'string' and string.match(about, 'run_id:(%w+)') or nil
end

-- otherRun returns the error of a server that is not in the run with an ID, false for any other and without an ID.
local function otherRun(id)
  if id == '' or (runOfServer() or id) == id then return false end
  return redis.error_reply('OTHERRUN the server was restarted or replaced')
end

-- clock returns the time of Redis in ms.
local function clock()
  local t = redis.call('TIME')
  return string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))
end
