-- Adds jobs to the board, after due.lua. It uses sequence of commit.lua.

local function nextSequence()
  -- The number is at least the clock, so that a server that has lost data assigns no id twice.
  sequence = math.max(sequence + 1, micros)
  return sequence
end

local function placeInOrder(id, place, number)
  rank(ORDER, id, whole(place * 2 ^ 50 + number - 1577836800000000))
end

local function addJob(place, posting, uuid, key, delay, others)
  local number = nextSequence()
  local id = 'job' .. whole(number)
  put(JOBS, id, posting)
  putRow(id, { revision = 0, posted = now, written = now, owner = '', more = '' })
  placeInOrder(id, place, number)
  rank(UUIDS, uuid .. ':' .. id, 0)
  if key then put(TAKEN, key, id .. ':' .. uuid) end
  local due = delay and whole(now + delay) or '0'
  if others and #others > 0 then
    beginWait(id, place, due, others)
    due = 'Infinity'
  elseif delay then
    beginDelay(id, due)
  end
  logChange('P' .. id .. placeText(place, due))
  return { true, id }
end

-- Returns the uuid of the job that has the key, if that job exists. A value that names no job is overwritten.
local function holderOf(key)
  local holder = key and get(TAKEN, key)
  if not holder then return end
  local id, uuid = string.match(holder, '^([^:]*):(.*)$')
  if id and has(JOBS, id) then return uuid end
end
