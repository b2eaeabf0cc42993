-- The beginning of most scripts: names for all KEYS, the clock of Redis, the state of the board, and the log of changes.
--
-- A script is one transaction: Redis runs nothing else meanwhile. But Redis rolls nothing back: a script that fails halfway
-- leaves its writes. So logChange, and put and rank in writes.lua, only collect changes at first. They verify the type of
-- the key, and each change can be undone. flushWrites and publish write the changes; Redis refuses none of these writes. Every
-- script that changes anything ends with these two calls.
--
-- Damage: a key may have been changed by hand. A value that no script writes is reported by fault, and replaced if that is
-- safe. Only the step that needs it is refused.
--
-- The log is a list with one entry per change: a letter and the job's id. version counts all entries ever made. So a client
-- that has seen a version asks for the entries after it, and detects when the list no longer holds all of them. Each script
-- also publishes its changes with the resulting version. The message is signed with the board's secret: otherwise any client
-- that may publish on the channel could forge the end of a job.
--
-- Numbers in Lua are doubles. whole formats numbers for keys, because Lua's own conversion keeps only 14 digits.

local BOARD, JOBS, ROWS, ORDER = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local HELD, GRANTED, EXCLUSIVE, SHARED = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local TAKEN, CANCELS, TRASH, TRASHED = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local LOG, OWNERS, ENTITIES, RESTING = KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local UUIDS, OWNER, FOLLOWERS, RECORDS = KEYS[17], KEYS[18], KEYS[19], KEYS[20]
local SLOTS, RATES = KEYS[21], KEYS[22]
local WAITS, DEPENDENTS, ENDING, HISTORY, ENDED = KEYS[23], KEYS[24], KEYS[25], KEYS[26], KEYS[27]
local BATCHES, MEMBERS, BATCH_JOBS, BATCH_ORDER, ENDED_BATCHES = KEYS[28], KEYS[29], KEYS[30], KEYS[31], KEYS[32]
local WINDOWS, INTERVALS = KEYS[33], KEYS[34]
local QUEUED, QUEUES = KEYS[35], KEYS[36]
local call = redis.call
local pack, unpacked = cmsgpack.pack, cmsgpack.unpack

local function whole(number) return string.format('%.0f', number) end

local time = call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
local nowText = whole(now)

-- Damage that was found, as sentences for people.
local faults = {}
local function fault(text) faults[#faults + 1] = text end

-- Parses a counter in the hash of the board. Returns nil and reports a fault for a value that no script writes.
local function counter(name, value, max)
  local number = tonumber(value or '0')
  if number and number >= 0 and number <= max and number == math.floor(number) then return number end
  fault('the field ' .. name .. ' of ' .. BOARD .. ' was not a valid number; it continues from the clock of the server')
end

local board = call('HMGET', BOARD, 'version', 'paused', 'secret')
local version, paused, secret = counter('version', board[1], 2 ^ 52), board[2] == '1', board[3]
if not version then
  -- This is larger than any version that was seen, so all owners list the board again. If writes are refused, the field keeps its value.
  version = micros
  redis.pcall('HSET', BOARD, 'version', whole(version))
end

local changes, isLogVerified = {}, false

-- Adds a change to the log. Fails if LOG is not a list.
local function logChange(change)
  if not isLogVerified then
    call('LLEN', LOG)
    isLogVerified = true
  end
  changes[#changes + 1] = change
end

-- A board of an older release has no secret until an owner of a newer release joins.
local function signed(message)
  if not secret then return message end
  return redis.sha1hex(secret .. redis.sha1hex(secret .. message)) .. message
end

-- Publishes the changes of followed jobs on the channels of their followers, who ask for the status then. It cannot fail: the
-- writes are done by then.
local function notifyFollowers(channel)
  if redis.pcall('HLEN', FOLLOWERS) == 0 then return end
  local entries = {}
  for _, change in ipairs(changes) do
    local letter, id = string.match(change, '^(%u)([^:]*)')
    local owners = not string.find('PRGH', letter, 1, true) and redis.pcall('HGET', FOLLOWERS, id)
    if type(owners) == 'string' then
      for owner in string.gmatch(owners, '[^,]+') do
        entries[owner] = entries[owner] or {}
        table.insert(entries[owner], change)
      end
      if letter == 'D' or letter == 'T' then redis.pcall('HDEL', FOLLOWERS, id) end
    end
  end
  for owner, list in pairs(entries) do
    redis.pcall('PUBLISH', channel .. ':' .. owner, signed(pack({ version, list })))
  end
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
  call('PUBLISH', channel, signed(pack({ version, changes })))
  notifyFollowers(channel)
end

-- Returns the entries after a version; false if the list does not reach back so far, or this is another board.
local function since(seen)
  local missed = version - seen
  -- No entries were missed, except the entries of this script.
  if missed == #changes then return changes end
  -- The seen version is larger than the version before this script, so it is from other data. Redis refuses -0 as an index.
  if missed < #changes or missed > call('LLEN', LOG) then return false end
  return call('LRANGE', LOG, -missed, -1)
end

-- Renews the owner's key. Redis does not refuse its first write when the memory is full, and then no later write of the script.
local function renew(id, ttl)
  call('PEXPIRE', OWNER, ttl)
  call('ZADD', OWNERS, whole(now + ttl), id)
end

-- Returns expired owners. Also returns owners with a time many years ahead: no owner sets such a time, which never expires.
local function expiredOwners()
  local found = call('ZRANGEBYSCORE', OWNERS, '-inf', '(' .. whole(now), 'LIMIT', 0, 16)
  for _, id in ipairs(call('ZRANGEBYSCORE', OWNERS, '(' .. whole(now + 2 ^ 40), '+inf', 'LIMIT', 0, 16)) do
    found[#found + 1] = id
  end
  return found
end

-- The time between two looks for jobs that have left the board while others depended on them.
local SWEEP_PERIOD_MS = 60000

-- Returns whether such a look has to begin or to continue, and after which member of DEPENDENTS.
local function sweepState()
  if call('EXISTS', DEPENDENTS) == 0 then return false, '' end
  local at, cursor = string.match(call('HGET', BOARD, 'swept') or '', '^(%d+):(.*)$')
  -- A time that is ahead was written before the clock was set back.
  return not at or cursor ~= '' or math.abs(now - tonumber(at)) >= SWEEP_PERIOD_MS, cursor or ''
end

-- The number of ended batches that a board keeps, as in model/job-batch.ts.
local MAX_ENDED_BATCHES = 1000

-- Returns the number of ended batches that are still to be removed. It cannot fail, even if the key was changed by hand.
local function excessBatches()
  local count = redis.pcall('ZCARD', ENDED_BATCHES)
  return type(count) == 'number' and math.max(count - MAX_ENDED_BATCHES, 0) or 0
end
