/** The scripts of a session: an owner's key that lives as long as its owner is heard of. */
import { PRELUDE } from './prelude.ts'

/**
 * What a look tells: the clock, the version, the changes since the one that was seen, the pause, who is late, how many jobs there are,
 * and the secret that publications are signed with.
 */
const OUTLOOK = `
local function outlook(seen)
  local earliest = call('ZRANGE', OWNERS, 0, 0, 'WITHSCORES')
  local missed = {}
  if seen then missed = since(seen) end
  return pack({
    whole(now), whole(version), missed, paused, late(), whole(earliest[2] or 0),
    call('HLEN', JOBS) ~= call('HLEN', ROWS), call('HLEN', ROWS), secret or '',
  })
end
`

/**
 * A new owner; and the board, where there is none. ARGV: its id, the channel, its TTL, whether the board may be made, the
 * format that is known here, a secret for a board that has none. Answers `false, format` for a board that cannot be opened: 0 where there is none.
 */
export const JOIN = `${PRELUDE}${OUTLOOK}
local id, channel, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local mayMake, format = ARGV[4] == '1', tonumber(ARGV[5])
local there = call('HGET', BOARD, 'format')
if not there and not mayMake then return { pack({ false, 0 }) } end
if there and tonumber(there) > format then return { pack({ false, tonumber(there) }) } end
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
export const LOOK = `${PRELUDE}${OUTLOOK}
local id, ttl, seen = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local last = tonumber(call('HGET', OWNER, 'number') or '-1')
if last < tonumber(ARGV[4]) or last > tonumber(ARGV[5]) then return { pack({ false, last }) } end
renew(id, ttl)
return { pack({ true }), outlook(seen) }
`

/**
 * An owner is no more: what it held is free. KEYS: all, with that owner's. ARGV: its id, the channel, 1 where it is the owner
 * itself that goes. Of one that lives nothing is taken.
 */
export const BURY = `${PRELUDE}
local id, channel, itself = ARGV[1], ARGV[2], ARGV[3] == '1'
if itself then call('DEL', OWNER) elseif call('EXISTS', OWNER) == 1 then return 0 end
call('ZREM', OWNERS, id)
local held = call('HGETALL', HELD)
for at = 1, #held, 2 do
  local job = held[at]
  if string.sub(held[at + 1], 1, #id + 1) == id .. ':' then
    local row = rowOf(job)
    if row and row.owner == id then
      released(job, row)
      putRow(job, row)
      tell('L' .. job)
    else
      pending[HELD][job] = false
    end
  end
end
local entities = call('HGETALL', ENTITIES)
for at = 1, #entities, 2 do
  if string.sub(entities[at + 1], 1, #id + 1) == id .. ':' then call('HDEL', ENTITIES, entities[at]) end
end
written()
told(channel)
return 1
`

/** Rows and postings of the ids in ARGV, by turns, as they were at one moment. KEYS: all. */
export const READ = `
local rows, postings = redis.call('HMGET', KEYS[3], unpack(ARGV)), redis.call('HMGET', KEYS[2], unpack(ARGV))
local both = {}
for at = 1, #ARGV do
  both[2 * at - 1], both[2 * at] = rows[at], postings[at]
end
return both
`
