/**
 * What every script begins with: the keys by their names, Redis' clock, the log of changes.
 *
 * A script is one transaction: Redis runs nothing else meanwhile. It takes nothing back, though: whatever can be refused is
 * looked at before the first write of a step. Who changes anything ends with `written` and then `told`.
 *
 * **The log** is a list of what has happened, one entry a change: a letter and the job's id. `version` counts all entries
 * that there have ever been, so whoever has seen up to one version asks for those after it, and knows when it has missed
 * more than the list still holds. What a script did is also published, with the version it led to, signed with the
 * board's secret: everybody who may publish on the channel could otherwise forge what becomes of a job.
 *
 * Numbers of Lua are doubles: what goes into a key is written by `whole`, for Lua's own way has 14 digits.
 */
export const PRELUDE = `
local BOARD, JOBS, ROWS, ORDER = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local HELD, GRANTED, EXCLUSIVE, SHARED = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local TAKEN, CANCELS, TRASH, TRASHED = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local LOG, OWNERS, ENTITIES, RESTING = KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local UUIDS, OWNER = KEYS[17], KEYS[18]
local call = redis.call
local pack, unpacked = cmsgpack.pack, cmsgpack.unpack

local function whole(number) return string.format('%.0f', number) end

local time = call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)

local board = call('HMGET', BOARD, 'version', 'paused', 'secret')
local version, paused, secret = tonumber(board[1] or '0'), board[2] == '1', board[3]

local changes = {}
local function tell(change) changes[#changes + 1] = change end

local function told(channel)
  if #changes == 0 then return end
  local length
  for from = 1, #changes, 1000 do
    length = call('RPUSH', LOG, unpack(changes, from, math.min(from + 999, #changes)))
  end
  if length > 20000 then call('LTRIM', LOG, -10000, -1) end
  version = version + #changes
  call('HSET', BOARD, 'version', whole(version))
  local message = pack({ version, changes })
  -- A board of an older release has no secret until a newer one joins it.
  if secret then message = redis.sha1hex(secret .. redis.sha1hex(secret .. message)) .. message end
  call('PUBLISH', channel, message)
end

-- False where the list does not go back so far, or the board is not the one that was seen.
local function since(seen)
  local missed = version - seen
  -- Nothing, or what this script has just told.
  if missed == #changes then return changes end
  -- Less than what this script has just told: a version was seen that had not been reached. Redis refuses -0 as an index.
  if missed < #changes or missed > call('LLEN', LOG) then return false end
  return call('LRANGE', LOG, -missed, -1)
end

-- The owner lives on. Its first write is one that a full memory does not refuse, and then none of this script is.
local function renew(id, ttl)
  call('PEXPIRE', OWNER, ttl)
  call('ZADD', OWNERS, whole(now + ttl), id)
end

-- Who should have been heard of by now.
local function late()
  return call('ZRANGEBYSCORE', OWNERS, '-inf', '(' .. whole(now), 'LIMIT', 0, 16)
end

-- What a script puts into these, and takes out, is kept here and written at the end: one call for many fields costs a
-- fraction of one for each. Until then it is read here first. False is what was taken out.
local pending = { [JOBS] = {}, [ROWS] = {}, [HELD] = {} }
local placed, displaced, named, unnamed = {}, {}, {}, {}

local function has(key, field)
  local value = pending[key][field]
  if value == nil then return call('HEXISTS', key, field) == 1 end
  return value ~= false
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
  inParts('ZADD', ORDER, placed)
  inParts('ZREM', ORDER, displaced)
  inParts('ZADD', UUIDS, named)
  inParts('ZREM', UUIDS, unnamed)
end

-- A row: revision, when posted, when written, the owner's id if there is one, and a + if it was granted resources.
local function rowOf(id)
  local row = pending[ROWS][id]
  if row == nil then row = call('HGET', ROWS, id) end
  if not row then return end
  local revision, posted, written, owner, more = string.match(row, '^(%d+):(%d+):(%d+):([^+]*)(%+?)$')
  return { revision = tonumber(revision), posted = posted, written = written, owner = owner, more = more }
end

local function putRow(id, row)
  pending[ROWS][id] = whole(row.revision) .. ':' .. row.posted .. ':' .. row.written .. ':' .. row.owner .. row.more
end

-- The texts of one of the two lists of grants.
local function names(wants, which)
  local found = {}
  if type(wants) ~= 'table' or type(wants[which]) ~= 'table' then return found end
  for _, name in ipairs(wants[which]) do
    if type(name) == 'string' then found[#found + 1] = name end
  end
  return found
end

-- How many share the resource now. A value that is no number counts as none.
local function counted(name, by)
  local count = redis.pcall('HINCRBY', SHARED, name, by)
  if type(count) == 'number' then return count end
  call('HSET', SHARED, name, math.max(by, 0))
  return math.max(by, 0)
end

-- The resources of a job are free; the row is the caller's to write.
local function giveBack(id, row)
  pending[HELD][id] = false
  if row.more == '' then return end
  local granted = call('HGET', GRANTED, id)
  if not granted then return end
  -- What is no record of grants gives nothing back: an error here would end the whole batch, and each that tries it again.
  local isRecord, wants = pcall(unpacked, granted)
  for _, name in ipairs(isRecord and names(wants, 1) or {}) do call('HDEL', EXCLUSIVE, name) end
  for _, name in ipairs(isRecord and names(wants, 2) or {}) do
    if counted(name, -1) <= 0 then call('HDEL', SHARED, name) end
  end
  call('HDEL', GRANTED, id)
end

local function released(id, row)
  giveBack(id, row)
  row.owner, row.more = '', ''
end
`
