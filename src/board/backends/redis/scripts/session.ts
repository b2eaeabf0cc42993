/** The scripts of a session. A session is an owner's key, which expires unless its owner renews it. */
import { SCRIPT_PRELUDE } from './prelude.ts'

/**
 * The status that an owner receives: the clock, the version, the changes since the seen version, the pause, expired owners,
 * the earliest end of a TTL, whether postings and rows are inconsistent, the number of jobs, the secret that signs
 * publications, and the damage that was found.
 */
const OWNER_STATUS = `
local function status(seen)
  -- The time of an owner that was added by hand may be infinite.
  local earliest = math.min(math.max(tonumber(call('ZRANGE', OWNERS, 0, 0, 'WITHSCORES')[2]) or 0, 0), 2 ^ 53)
  local missed = {}
  if seen then missed = since(seen) end
  return pack({
    whole(now), whole(version), missed, paused, late(), whole(earliest),
    call('HLEN', JOBS) ~= call('HLEN', ROWS), call('HLEN', ROWS), secret or '', faults,
  })
end
`

/**
 * Adds an owner, and creates the board if there is none. ARGV: the owner's id, the channel, the TTL, whether the board may be
 * created, the supported format, and a secret for a board that has none. Returns `false, format` for a board that cannot be
 * opened; the format is 0 if there is no board.
 */
export const JOIN_SOURCE = `${SCRIPT_PRELUDE}${OWNER_STATUS}
local id, channel, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local mayMake, format = ARGV[4] == '1', tonumber(ARGV[5])
local there = call('HGET', BOARD, 'format')
if not there and not mayMake then return { pack({ false, 0 }) } end
if there and not (tonumber(there) and tonumber(there) <= format) then return { pack({ false, there }) } end
-- A full memory does not refuse this first write, so an owner may join to drain a board.
call('DEL', OWNER)
if not there then call('HSET', BOARD, 'format', whole(format), 'paused', '0', 'version', '0') end
if not secret then
  secret = ARGV[6]
  call('HSET', BOARD, 'secret', secret)
end
call('HSET', OWNER, 'number', '0')
renew(id, ttl)
-- An owner without the right to publish fails here, and not in the middle of a change.
call('PUBLISH', channel .. ':joined', '')
return { pack({ true, not there }), status() }
`

/**
 * Renews the owner's key, and returns the changes that the owner has missed. ARGV: the owner's id, its TTL, the version it has
 * seen (or nothing), and the numbers of its newest answered and newest sent batch. Returns `false` if the key is missing, or
 * if the server has lost changes that it had confirmed.
 */
export const RENEW_SOURCE = `${SCRIPT_PRELUDE}${OWNER_STATUS}
local id, ttl, seen = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
-- A value that is not a number, or a key that is not a hash, counts as a missing key.
local last = tonumber(redis.pcall('HGET', OWNER, 'number') or '-1') or -1
if last < tonumber(ARGV[4]) or last > tonumber(ARGV[5]) then return { pack({ false, last }) } end
renew(id, ttl)
return { pack({ true }), status(seen) }
`

/**
 * Releases what a dead owner held. KEYS: all, including that owner's. ARGV: the owner's id, the channel, 1 if the owner itself
 * leaves, and the TTL of the caller. A living owner keeps its claims. Returns the damage that was found.
 *
 * An owner that cannot be released is postponed, each time for longer: at the head of the expired owners it would block the
 * others. A living owner renews its time by itself.
 */
export const RELEASE_OWNER_SOURCE = `${SCRIPT_PRELUDE}
local id, channel, itself, ttl = ARGV[1], ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])

local function postpone(times)
  call('ZADD', OWNERS, whole(now + math.min(ttl * 2 ^ math.min(times, 8), 2 ^ 39)), id)
end

local function release()
  for job, holder in pairs(all(HELD)) do
    if string.sub(holder, 1, #id + 1) == id .. ':' then
      local row = rowOf(job)
      if row and row.owner == id then
        released(job, row)
        putRow(job, row)
        logChange('L' .. job)
      else
        put(HELD, job, false)
      end
    end
  end
  for field, entity in pairs(all(ENTITIES)) do
    if string.sub(entity, 1, #id + 1) == id .. ':' then put(ENTITIES, field, false) end
  end
  written()
end

if itself then
  call('DEL', OWNER)
elseif call('EXISTS', OWNER) == 1 then
  local times = redis.pcall('HINCRBY', OWNER, 'late', 1)
  postpone(type(times) == 'number' and times or 8)
  return faults
end
-- A full memory does not refuse this first write.
call('ZREM', OWNERS, id)
local done, thrown = pcall(release)
if not done then
  postpone(3)
  undo()
  fault('the claims of dead owner ' .. id .. ' could not be released yet: ' .. problemOf(thrown))
  return faults
end
publish(channel)
return faults
`

/** Returns the rows and postings of the ids in ARGV, alternately, as of one moment. KEYS: all. */
export const READ_SOURCE = `
local rows, postings = redis.call('HMGET', KEYS[3], unpack(ARGV)), redis.call('HMGET', KEYS[2], unpack(ARGV))
local both = {}
for at = 1, #ARGV do
  both[2 * at - 1], both[2 * at] = rows[at], postings[at]
end
return both
`
