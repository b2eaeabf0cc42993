/**
 * What every script begins with: the keys by their names, Redis' clock, the log of changes.
 *
 * A script is one transaction: Redis runs nothing else meanwhile. It takes nothing back, though: a script that fails halfway
 * leaves what it has written. So changes are only collected first, by `put`, `rank` and `tell`, which verify the type of the
 * key, and each can be undone; nothing that `written` and `told` do is refused. Who changes anything ends with these two.
 *
 * **Damage.** What a key holds may have been changed by hand. A value that no script writes is reported by `fault`, replaced
 * where that is safe, and refuses only the step that needs it.
 *
 * **The log** is a list of what has happened, one entry a change: a letter and the job's id. `version` counts all entries
 * that there have ever been, so whoever has seen up to one version asks for those after it, and knows when it has missed
 * more than the list still holds. What a script did is also published, with the version it led to, signed with the
 * board's secret: everybody who may publish on the channel could otherwise forge what becomes of a job.
 *
 * Numbers of Lua are doubles: what goes into a key is written by `whole`, for Lua's own way has 14 digits.
 */
export const SCRIPT_PRELUDE = `
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

-- What was found damaged, in sentences for people.
local faults = {}
local function fault(text) faults[#faults + 1] = text end

-- A counter in the hash of the board: nil, and a fault, where it is nothing that a script writes.
local function counter(name, value, most)
  local number = tonumber(value or '0')
  if number and number >= 0 and number <= most and number == math.floor(number) then return number end
  fault('the field ' .. name .. ' of ' .. BOARD .. ' was not a number that a board writes; it continues from the clock of the server')
end

local board = call('HMGET', BOARD, 'version', 'paused', 'secret')
local version, paused, secret = counter('version', board[1], 2 ^ 52), board[2] == '1', board[3]
if not version then
  -- Larger than any version that was seen, so everybody reads the board anew. Where writes are refused it stays as it is.
  version = micros
  redis.pcall('HSET', BOARD, 'version', whole(version))
end

-- Fails where the key is of another type than its command is for: once for each key is enough.
local verified = {}
local function verify(command, key)
  if verified[key] then return end
  call(command, key)
  verified[key] = true
end

local changes = {}
local function tell(change)
  verify('LLEN', LOG)
  changes[#changes + 1] = change
end

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

-- Owners whose time is over. One with a time that no owner sets, many years ahead, would never be looked at.
local function late()
  local found = call('ZRANGEBYSCORE', OWNERS, '-inf', '(' .. whole(now), 'LIMIT', 0, 16)
  for _, id in ipairs(call('ZRANGEBYSCORE', OWNERS, '(' .. whole(now + 2 ^ 40), '+inf', 'LIMIT', 0, 16)) do
    found[#found + 1] = id
  end
  return found
end

-- Changes are collected here and written at the end: one call for many fields costs a fraction of one for each. Until then
-- values are read here first. False stands for a field or member that is removed.
local pending = {
  [BOARD] = {}, [JOBS] = {}, [ROWS] = {}, [HELD] = {}, [GRANTED] = {}, [EXCLUSIVE] = {}, [SHARED] = {}, [TAKEN] = {},
  [CANCELS] = {}, [TRASH] = {}, [ENTITIES] = {},
}
local scored = { [ORDER] = {}, [RESTING] = {}, [UUIDS] = {}, [TRASHED] = {} }

-- For each change since the last mark: the table, the name in it, and what was there before.
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

-- What an error says. Missing rights are no damage: they end the script.
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

-- A row: revision, when posted, when written, the owner's id if there is one, and a + if it was granted resources.
local function rowOf(id)
  local row = get(ROWS, id)
  if not row then return end
  local revision, posted, written, owner, more = string.match(row, '^(%d+):(%d+):(%d+):([^+]*)(%+?)$')
  return { revision = tonumber(revision), posted = posted, written = written, owner = owner, more = more }
end

local function putRow(id, row)
  put(ROWS, id, whole(row.revision) .. ':' .. row.posted .. ':' .. row.written .. ':' .. row.owner .. row.more)
end

-- The names of the exclusive and of the shared resources in a record of grants; nil for what is no such record.
local function namesIn(record)
  local isRecord, lists = pcall(unpacked, record)
  if not isRecord or type(lists) ~= 'table' then return end
  for which = 1, 2 do
    if type(lists[which]) ~= 'table' then return end
    for _, name in ipairs(lists[which]) do
      if type(name) ~= 'string' then return end
    end
  end
  return lists[1], lists[2]
end

-- How many jobs share each resource, by the records of grants. The second is whether all of these can be read.
local function tally()
  local counts, sound = {}, true
  for _, record in pairs(all(GRANTED)) do
    local exclusive, shared = namesIn(record)
    sound = sound and exclusive ~= nil
    for _, name in ipairs(shared or {}) do counts[name] = (counts[name] or 0) + 1 end
  end
  return counts, sound
end

-- How many share the resource now. In doubt it is taken as shared: two owners are worse than a job that waits.
local function sharing(name)
  local value = get(SHARED, name)
  if not value then return 0 end
  local count = tonumber(value)
  if count and count >= 0 and count <= 2 ^ 53 and count == math.floor(count) then return count end
  fault('the field ' .. name .. ' of ' .. SHARED .. ' was not a number that a board writes; it is counted anew')
  local counts, sound = tally()
  return math.max(counts[name] or 0, sound and 0 or 1)
end

local function share(name, count) put(SHARED, name, count > 0 and whole(count) or false) end

-- What the job held cannot be read: its exclusive resources are found by its id, shared ones are counted anew.
local function giveBackUnread(id)
  fault('the field ' .. id .. ' of ' .. GRANTED .. ' was not a record that a board writes; the resources of that job are free')
  for name, holder in pairs(all(EXCLUSIVE)) do
    if holder == id then put(EXCLUSIVE, name, false) end
  end
  local counts, sound = tally()
  if not sound then return end
  for name in pairs(all(SHARED)) do share(name, counts[name] or 0) end
end

-- The resources of a job are free; the row is the caller's to write.
local function giveBack(id, row)
  put(HELD, id, false)
  if row.more == '' then return end
  local record = get(GRANTED, id)
  if not record then return end
  local exclusive, shared = namesIn(record)
  for _, name in ipairs(exclusive or {}) do
    if get(EXCLUSIVE, name) == id then put(EXCLUSIVE, name, false) end
  end
  for _, name in ipairs(shared or {}) do share(name, sharing(name) - 1) end
  put(GRANTED, id, false)
  if not exclusive then giveBackUnread(id) end
end

local function released(id, row)
  giveBack(id, row)
  row.owner, row.more = '', ''
end
`
