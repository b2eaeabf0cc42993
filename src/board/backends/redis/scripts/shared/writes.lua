-- Collects the writes of a script, after board.lua. Changes are collected here and written at the end: one call for many
-- fields costs a fraction of one call for each. Until then, reads look here first. False marks a field or member that is
-- removed.

local pending = {
  [BOARD] = {}, [JOBS] = {}, [ROWS] = {}, [HELD] = {}, [GRANTED] = {}, [EXCLUSIVE] = {}, [SHARED] = {}, [TAKEN] = {},
  [CANCELS] = {}, [TRASH] = {}, [ENTITIES] = {},
}
local scored = { [ORDER] = {}, [RESTING] = {}, [UUIDS] = {}, [TRASHED] = {} }

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
local function problemOf(thrown)
  local text = type(thrown) == 'table' and thrown.err or tostring(thrown)
  if string.find(text, 'NOPERM', 1, true) or string.find(text, 'The user executing the script', 1, true) then error(thrown, 0) end
  return text
end

local function put(key, field, value)
  verify('HLEN', key)
  note(pending[key], field, value)
end

local function rank(key, member, score)
  verify('ZCARD', key)
  note(scored[key], member, score)
end

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

local function all(key)
  local found, listed = {}, call('HGETALL', key)
  for at = 1, #listed, 2 do found[listed[at]] = listed[at + 1] end
  for field, value in pairs(pending[key]) do found[field] = value or nil end
  return found
end

local function inParts(command, key, list)
  for from = 1, #list, 2000 do call(command, key, unpack(list, from, math.min(from + 1999, #list))) end
end

local function written()
  for key, fields in pairs(pending) do
    local put, out = {}, {}
    for field, value in pairs(fields) do
      if value then
        put[#put + 1] = field
        put[#put + 1] = value
      else
        out[#out + 1] = field
      end
    end
    inParts('HSET', key, put)
    inParts('HDEL', key, out)
  end
  for key, members in pairs(scored) do
    local put, out = {}, {}
    for member, score in pairs(members) do
      if score then
        put[#put + 1] = score
        put[#put + 1] = member
      else
        out[#out + 1] = member
      end
    end
    inParts('ZADD', key, put)
    inParts('ZREM', key, out)
  end
end
