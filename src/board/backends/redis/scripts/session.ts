/** The scripts of a session: an owner's key that lives as long as its owner is heard of. */
import { SCRIPT_PRELUDE } from './prelude.ts'

/**
 * What a look tells: the clock, the version, the changes since the one that was seen, the pause, who is late, how many jobs there are,
 * the secret that publications are signed with, and what was found damaged.
 */
const OWNER_STATUS = `
local function outlook(seen)
  -- Of an owner that was entered by hand it may be infinite.
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
 * A new owner; and the board, where there is none. ARGV: its id, the channel, its TTL, whether the board may be made, the
 * format that is known here, a secret for a board that has none. Answers `false, format` for a board that cannot be opened: 0 where there is none.
 */
export const JOIN_SOURCE = `${SCRIPT_PRELUDE}${OWNER_STATUS}
local id, channel, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local mayMake, format = ARGV[4] == '1', tonumber(ARGV[5])
local there = call('HGET', BOARD, 'format')
if not there and not mayMake then return { pack({ false, 0 }) } end
if there and not (tonumber(there) and tonumber(there) <= format) then return { pack({ false, there }) } end
-- A first write that a full memory does not refuse: whoever drains a board may join it.
call('DEL', OWNER)
if not there then call('HSET', BOARD, 'format', whole(format), 'paused', '0', 'version', '0') end
if not secret then
  secret = ARGV[6]
  call('HSET', BOARD, 'secret', secret)
end
call('HSET', OWNER, 'number', '0')
renew(id, ttl)
-- Who may not publish is told so now, and not in the middle of a change.
call('PUBLISH', channel .. ':joined', '')
return { pack({ true, not there }), outlook() }
`

/**
 * The owner is alive, and hears what it has missed. ARGV: its id, its TTL, the version it has seen (or nothing), the numbers
 * of the last batch it knows of, and of one whose answers it waits for. Answers `false` where the key is gone, or the
 * server has forgotten what it had said was done.
 */
export const RENEW_SOURCE = `${SCRIPT_PRELUDE}${OWNER_STATUS}
local id, ttl, seen = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
-- What is no number, or no hash, knows as much as a key that is gone.
local last = tonumber(redis.pcall('HGET', OWNER, 'number') or '-1') or -1
if last < tonumber(ARGV[4]) or last > tonumber(ARGV[5]) then return { pack({ false, last }) } end
renew(id, ttl)
return { pack({ true }), outlook(seen) }
`

/**
 * An owner is no more: what it held is free. KEYS: all, with that owner's. ARGV: its id, the channel, 1 where it is the owner
 * itself that goes, the TTL of who asks. Of one that lives nothing is taken. Answers what was found damaged.
 *
 * One that cannot be buried is looked at again later, and ever more rarely: its place among the first that are late would
 * keep others from being buried. An owner that lives sets its time anew by itself.
 */
export const RELEASE_OWNER_SOURCE = `${SCRIPT_PRELUDE}
local id, channel, itself, ttl = ARGV[1], ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])

local function postpone(times)
  call('ZADD', OWNERS, whole(now + math.min(ttl * 2 ^ math.min(times, 8), 2 ^ 39)), id)
end

local function bury()
  for job, holder in pairs(all(HELD)) do
    if string.sub(holder, 1, #id + 1) == id .. ':' then
      local row = rowOf(job)
      if row and row.owner == id then
        released(job, row)
        putRow(job, row)
        tell('L' .. job)
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
-- A first write that a full memory does not refuse.
call('ZREM', OWNERS, id)
local done, thrown = pcall(bury)
if not done then
  postpone(3)
  undo()
  fault('what owner ' .. id .. ' held is not free yet: ' .. problemOf(thrown))
  return faults
end
told(channel)
return faults
`

/** Rows and postings of the ids in ARGV, by turns, as they were at one moment. KEYS: all. */
export const READ_SOURCE = `
local rows, postings = redis.call('HMGET', KEYS[3], unpack(ARGV)), redis.call('HMGET', KEYS[2], unpack(ARGV))
local both = {}
for at = 1, #ARGV do
  both[2 * at - 1], both[2 * at] = rows[at], postings[at]
end
return both
`
