/**
 * The common beginning of the scripts: names of the keys, the clock of Redis, and the log of changes.
 *
 * A script is one transaction: Redis runs nothing else meanwhile. But Redis rolls nothing back: a script that fails halfway
 * leaves its writes. So `put`, `rank` and `logChange` only collect changes at first. They verify the type of the key, and
 * each change can be undone. `written` and `publish` write the changes; no write of theirs is refused. Every script that
 * changes anything ends with these two calls.
 *
 * **Damage.** A key may have been changed by hand. A value that no script writes is reported by `fault`, and replaced if that
 * is safe. Only the step that needs it is refused.
 *
 * **The log** is a list with one entry per change: a letter and the job's id. `version` counts all entries ever made. So a
 * client that has seen a version asks for the entries after it, and detects when the list no longer holds all of them. Each
 * script also publishes its changes with the resulting version. The message is signed with the board's secret: otherwise any
 * client that may publish on the channel could forge the end of a job.
 *
 * Numbers in Lua are doubles. `whole` formats numbers for keys, because Lua's own conversion keeps only 14 digits.
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

-- Damage that was found, as sentences for people.
local faults = {}
local function fault(text) faults[#faults + 1] = text end

-- Parses a counter in the hash of the board. Returns nil and reports a fault for a value that no script writes.
local function counter(name, value, most)
  local number = tonumber(value or '0')
  if number and number >= 0 and number <= most and number == math.floor(number) then return number end
  fault('the field ' .. name .. ' of ' .. BOARD .. ' was not a valid number; it continues from the clock of the server')
end

local board = call('HMGET', BOARD, 'version', 'paused', 'secret')
local version, paused, secret = counter('version', board[1], 2 ^ 52), board[2] == '1', board[3]
if not version then
  -- This is larger than any version that was seen, so all owners list the board again. If writes are refused, the field keeps its value.
  version = micros
  redis.pcall('HSET', BOARD, 'version', whole(version))
end

-- Fails if the type of the key does not fit the command; it is checked once per key.
local verified = {}
local function verify(command, key)
  if verified[key] then return end
  call(command, key)
  verified[key] = true
end

local changes = {}
local function logChange(change)
  verify('LLEN', LOG)
  changes[#changes + 1] = change
end

local function publish(channel)
  if #changes == 0 then return end
  local length
  for from = 1, #changes, 1000 do
    length = call('RPUSH', LOG, unpack(changes, from, math.min(from + 999, #changes)))
  end
  if length > 20000 then call('LTRIM', LOG, -10000, -1) end
  version = version + #changes
  call('HSET', BOARD, 'version', whole(version))
  local message = pack({ version, changes })
  -- A board of an older release has no secret until an owner of a newer release joins.
  if secret then message = redis.sha1hex(secret .. redis.sha1hex(secret .. message)) .. message end
  call('PUBLISH', channel, message)
end

-- Returns the entries after a version; false if the list does not reach back so far, or this is another board.
local function since(seen)
  local missed = version - seen
  -- No entries were missed, except those of this script.
  if missed == #changes then return changes end
  -- With fewer entries than this script has added, the seen version was never reached here. Redis refuses -0 as an index.
  if missed < #changes or missed > call('LLEN', LOG) then return false end
  return call('LRANGE', LOG, -missed, -1)
end

-- Renews the owner's key. Its first write is one that a full memory does not refuse; then no later write of the script is refused.
local function renew(id, ttl)
  call('PEXPIRE', OWNER, ttl)
  call('ZADD', OWNERS, whole(now + ttl), id)
end

-- Returns expired owners, and owners with a time many years ahead, which no owner sets and which would never expire.
local function late()
  local found = call('ZRANGEBYSCORE', OWNERS, '-inf', '(' .. whole(now), 'LIMIT', 0, 16)
  for _, id in ipairs(call('ZRANGEBYSCORE', OWNERS, '(' .. whole(now + 2 ^ 40), '+inf', 'LIMIT', 0, 16)) do
    found[#found + 1] = id
  end
  return found
end

-- Changes are collected here and written at the end: one call for many fields costs a fraction of one call for each. Until
-- then, reads look here first. False marks a field or member that is removed.
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

-- Parses a row: revision, time of the post, time of the last write, the owner's id or nothing, and a + if resources are granted.
local function rowOf(id)
  local row = get(ROWS, id)
  if not row then return end
  local revision, posted, written, owner, more = string.match(row, '^(%d+):(%d+):(%d+):([^+]*)(%+?)$')
  return { revision = tonumber(revision), posted = posted, written = written, owner = owner, more = more }
end

local function putRow(id, row)
  put(ROWS, id, whole(row.revision) .. ':' .. row.posted .. ':' .. row.written .. ':' .. row.owner .. row.more)
end

-- Returns the names of the exclusive and of the shared resources in a record of grants; nil for an invalid record.
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

-- Counts the jobs that share each resource, from the records of grants. The second result is whether all records can be read.
local function tally()
  local counts, sound = {}, true
  for _, record in pairs(all(GRANTED)) do
    local exclusive, shared = namesIn(record)
    sound = sound and exclusive ~= nil
    for _, name in ipairs(shared or {}) do counts[name] = (counts[name] or 0) + 1 end
  end
  return counts, sound
end

-- Returns the number of jobs that share the resource. In doubt the resource counts as shared: two owners are worse than a job that waits.
local function sharing(name)
  local value = get(SHARED, name)
  if not value then return 0 end
  local count = tonumber(value)
  if count and count >= 0 and count <= 2 ^ 53 and count == math.floor(count) then return count end
  fault('the field ' .. name .. ' of ' .. SHARED .. ' was not a valid number; the jobs are counted again')
  local counts, sound = tally()
  return math.max(counts[name] or 0, sound and 0 or 1)
end

local function share(name, count) put(SHARED, name, count > 0 and whole(count) or false) end

-- Releases the resources of a job whose record cannot be read: exclusive ones are found by its id, shared ones are counted again.
local function giveBackUnread(id)
  fault('the field ' .. id .. ' of ' .. GRANTED .. ' was not a valid record; the resources of that job are released')
  for name, holder in pairs(all(EXCLUSIVE)) do
    if holder == id then put(EXCLUSIVE, name, false) end
  end
  local counts, sound = tally()
  if not sound then return end
  for name in pairs(all(SHARED)) do share(name, counts[name] or 0) end
end

-- Releases the resources of a job; the caller writes the row.
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
