-- Collects the writes of a script, after board.lua. Writes are collected here and sent at the end, because one call for many
-- fields is much cheaper than one call for each field. Until then, reads look here first. The value false marks a field or
-- member that is removed.

local pending, scored
do

-- Returns a table that has a table for each key; it is made at the first use of the key. Fails if the type of the key does not fit.
local function byKey(command)
  return setmetatable({}, {
    __index = function(tables, key)
      call(command, key)
      local values = {}
      tables[key] = values
      return values
    end,
  })
end

pending, scored = byKey('HLEN'), byKey('ZCARD')

end

-- For each change since the last mark: the table, the name in it, and the former value.
local journal, noted = {}, 0
local marked = 0

local function note(values, name, value)
  journal[noted + 1], journal[noted + 2], journal[noted + 3] = values, name, values[name]
  values[name] = value
  noted = noted + 3
end

local function mark() noted, marked = 0, #changes end

local function undo()
  for at = noted, 1, -3 do journal[at - 2][journal[at - 1]] = journal[at] end
  noted = 0
  for at = #changes, marked + 1, -1 do changes[at] = nil end
end

-- Returns the text of an error. Missing rights are not damage: they end the script.
local function errorText(thrown)
  local text = type(thrown) == 'table' and thrown.err or tostring(thrown)
  if string.find(text, 'NOPERM', 1, true) or string.find(text, 'The user executing the script', 1, true) then error(thrown, 0) end
  return text
end

local function put(key, field, value) note(pending[key], field, value) end

local function rank(key, member, score) note(scored[key], member, score) end

local function get(key, field)
  local value = pending[key][field]
  if value == nil then return call('HGET', key, field) end
  return value
end

local function has(key, field)
  local value = pending[key][field]
  if value == nil then return call('HEXISTS', key, field) == 1 end
  return value ~= false
end

local function isRanked(key, member)
  local score = scored[key][member]
  if score == nil then return call('ZSCORE', key, member) ~= false end
  return score ~= false
end

local function all(key)
  local found, listed = {}, call('HGETALL', key)
  for at = 1, #listed, 2 do found[listed[at]] = listed[at + 1] end
  for field, value in pairs(pending[key]) do found[field] = value or nil end
  return found
end

local function callInParts(command, key, list, count)
  for from = 1, count, 2000 do call(command, key, unpack(list, from, math.min(from + 1999, count))) end
end

-- Sends all collected writes.
local function flushWrites()
  for key, fields in pairs(pending) do
    local set, length, removed, count = {}, 0, {}, 0
    for field, value in pairs(fields) do
      if value then
        set[length + 1], set[length + 2] = field, value
        length = length + 2
      else
        count = count + 1
        removed[count] = field
      end
    end
    callInParts('HSET', key, set, length)
    callInParts('HDEL', key, removed, count)
  end
  for key, members in pairs(scored) do
    local set, length, removed, count = {}, 0, {}, 0
    for member, score in pairs(members) do
      if score then
        set[length + 1], set[length + 2] = score, member
        length = length + 2
      else
        count = count + 1
        removed[count] = member
      end
    end
    callInParts('ZADD', key, set, length)
    callInParts('ZREM', key, removed, count)
  end
end
