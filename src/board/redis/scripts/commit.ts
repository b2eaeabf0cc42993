/**
 * The script that changes the board: a batch of steps, each done or refused by itself.
 *
 * It obeys one owner, batch after batch: each has the number after the one before it. The number and the answers are kept
 * with the owner's key, so a batch that comes a second time, because its answers were lost, is answered and not done again;
 * one that comes too late, or from before the server lost what it had said was done, changes nothing.
 */
import { PRELUDE } from './prelude.ts'

const STEPS = `
local steps = {}

local function nextSequence()
  -- By the clock, so that no id comes twice on a server that has forgotten some.
  sequence = math.max(sequence + 1, micros)
  return sequence
end

local function place(id, rank, number)
  placed[#placed + 1] = whole(rank * 2 ^ 50 + number - 1577836800000000)
  placed[#placed + 1] = id
end

-- Whether anything rests: looked at once, when it is needed.
local resting

local function wake(id)
  if resting == nil then resting = call('EXISTS', RESTING) == 1 end
  if resting then call('ZREM', RESTING, id) end
end

local function rest(id, delay)
  resting = true
  call('ZADD', RESTING, whole(now + delay), id)
end

local function add(rank, bytes, uuid, key, delay)
  local number = nextSequence()
  local id = 'job' .. whole(number)
  pending[JOBS][id] = ARGV[bytes]
  putRow(id, { revision = 0, posted = now, written = now, owner = '', more = '' })
  place(id, rank, number)
  named[#named + 1] = 0
  named[#named + 1] = uuid .. ':' .. id
  if key then call('HSET', TAKEN, key, id .. ':' .. uuid) end
  if delay then
    rest(id, delay)
    tell('P' .. id .. ':' .. rank .. ':' .. whole(now + delay))
  else
    tell(rank == 2 and 'P' .. id or 'P' .. id .. ':' .. rank)
  end
  return { true, id }
end

-- The uuid of the job that has the key, if that job is there.
local function holderOf(key)
  local holder = key and call('HGET', TAKEN, key)
  if not holder then return end
  local id, uuid = string.match(holder, '^([^:]*):(.*)$')
  if has(JOBS, id) then return uuid end
end

-- Whether anybody has asked for any job to be given up: looked at once, when it is needed.
local cancels

local function remove(id, row, key, uuid)
  giveBack(id, row)
  if row.owner == '' then wake(id) end
  if uuid then unnamed[#unnamed + 1] = uuid .. ':' .. id end
  pending[JOBS][id], pending[ROWS][id] = false, false
  displaced[#displaced + 1] = id
  if cancels == nil then cancels = call('EXISTS', CANCELS) == 1 end
  if cancels then call('HDEL', CANCELS, id) end
  if not key then return end
  local holder = call('HGET', TAKEN, key)
  if holder and string.sub(holder, 1, #id + 1) == id .. ':' then call('HDEL', TAKEN, key) end
end

local function toTrash(id, entry)
  call('HSET', TRASH, id, whole(now) .. ':' .. ARGV[entry])
  call('ZADD', TRASHED, whole(version + #changes + 1), id)
  tell('T' .. id)
end

function steps.post(rank, bytes, uuid, key, delay)
  local holder = holderOf(key)
  if holder then return { false, holder } end
  return add(rank, bytes, uuid, key, delay)
end

local function blocked(exclusive, shared)
  for _, name in ipairs(exclusive) do
    if call('HEXISTS', EXCLUSIVE, name) == 1 or call('HEXISTS', SHARED, name) == 1 then return name end
  end
  for _, name in ipairs(shared) do
    if call('HEXISTS', EXCLUSIVE, name) == 1 then return name end
  end
end

function steps.claim(id, revision, who, bytes, exclusive, shared)
  if paused then return { false, 'paused' } end
  local row = rowOf(id)
  if not row or not has(JOBS, id) then return { false, 'gone' } end
  if row.owner ~= '' or row.revision ~= revision then return { false, 'taken' } end
  if exclusive then
    local name = blocked(exclusive, shared)
    if name then return { false, 'resource', name } end
    for _, wanted in ipairs(exclusive) do call('HSET', EXCLUSIVE, wanted, id) end
    for _, wanted in ipairs(shared) do counted(wanted, 1) end
    call('HSET', GRANTED, id, pack({ exclusive, shared }))
    row.more = '+'
  end
  wake(id)
  pending[JOBS][id] = ARGV[bytes]
  pending[HELD][id] = owner .. ':' .. who
  row.revision, row.written, row.owner = revision + 1, now, owner
  putRow(id, row)
  fence = math.max(fence + 1, micros)
  tell('C' .. id)
  return { true, row.revision, fence }
end

-- The row, if this owner's claim at this revision stands.
local function ownRow(id, revision)
  local row = rowOf(id)
  if row and row.owner == owner and row.revision == revision then return row end
end

function steps.consume(id, revision, key, uuid)
  local row = ownRow(id, revision)
  if not row then return { false } end
  remove(id, row, key, uuid)
  tell('D' .. id)
  return { true }
end

function steps.abandon(id, revision, bytes, delay)
  local row = ownRow(id, revision)
  if not row then return { false } end
  released(id, row)
  pending[JOBS][id] = ARGV[bytes]
  row.revision, row.written = revision + 1, now
  putRow(id, row)
  -- One that is asked to be given up is due at once.
  if delay and call('HEXISTS', CANCELS, id) == 0 then rest(id, delay) end
  tell('A' .. id)
  return { true }
end

function steps.trash(id, revision, entry, key, uuid)
  local row = ownRow(id, revision)
  if not row then return { false } end
  remove(id, row, key, uuid)
  toTrash(id, entry)
  return { true }
end

function steps.discard(id, revision, entry, key, uuid)
  local row = rowOf(id)
  if not row then return { false, 'gone' } end
  if row.owner ~= '' or row.revision ~= revision then return { false, 'taken' } end
  remove(id, row, key, uuid)
  toTrash(id, entry)
  return { true }
end

function steps.cancel(id, request)
  if not has(ROWS, id) then return { false } end
  cancels = true
  if call('HSETNX', CANCELS, id, ARGV[request]) == 1 then
    wake(id)
    tell('X' .. id)
  end
  return { true }
end

function steps.gate(closed)
  if closed ~= paused then
    paused = closed
    call('HSET', BOARD, 'paused', closed and '1' or '0')
    tell(closed and 'G1' or 'G0')
  end
  return { true }
end

local function outOfTrash(id)
  call('HDEL', TRASH, id)
  call('ZREM', TRASHED, id)
end

function steps.restore(id, rank, bytes, uuid, key)
  if call('HEXISTS', TRASH, id) == 0 then return { false, 'gone' } end
  if holderOf(key) then return { false, 'key' } end
  outOfTrash(id)
  return add(rank, bytes, uuid, key)
end

function steps.purge(id)
  if call('HEXISTS', TRASH, id) == 0 then return { false } end
  outOfTrash(id)
  return { true }
end

function steps.register(field, instance, bytes)
  local there = call('HGET', ENTITIES, field)
  if there and string.match(there, '^[^:]*:([^:]*):') ~= instance then return { false } end
  call('HSET', ENTITIES, field, owner .. ':' .. instance .. ':' .. ARGV[bytes])
  return { true }
end

function steps.unregister(field, instance)
  local there = call('HGET', ENTITIES, field)
  if there and string.match(there, '^[^:]*:([^:]*):') == instance then call('HDEL', ENTITIES, field) end
  return { true }
end

-- What somebody did by hand: took a posting away, or put one there.
function steps.mend(id)
  local row, posting = rowOf(id), has(JOBS, id)
  if row and not posting then
    remove(id, row)
    tell('D' .. id)
  elseif posting and not row then
    putRow(id, { revision = 0, posted = now, written = now, owner = '', more = '' })
    -- As if it had been posted when its id says.
    local number = tonumber(string.match(id, '^job(%d+)$') or '')
    -- One of many digits would be placed behind every score that can be read.
    place(id, 2, number and number < 2 ^ 53 and number or nextSequence())
    tell('P' .. id)
  end
  return { true }
end
`

/**
 * KEYS: all, with the owner's. ARGV: its id, the channel, the head `[number, seen, ttl, grows, serial]`, the steps, and then all bytes
 * that steps are given, which name them by their place here: what Redis unpacks knows texts, and no bytes.
 */
export const COMMIT = `${PRELUDE}
local owner, channel = ARGV[1], ARGV[2]
local head = unpacked(ARGV[3])
local number, seen, ttl, grows, serial = head[1], head[2], head[3], head[4], whole(head[5])
local kept = call('HMGET', OWNER, 'number', 'serial')
local last = tonumber(kept[1] or '-1')
if last ~= number and last ~= number - 1 then return { pack({ false, last }) } end
-- Another batch with this number, which its owner was told was refused, has come over a former connection since.
if last == number and kept[2] ~= serial then return { pack({ false, last }) } end

local numbers = call('HMGET', BOARD, 'sequence', 'fence')
local sequence, fence = tonumber(numbers[1] or '0'), tonumber(numbers[2] or '0')
local refused = false
${STEPS}
-- Done before. It is answered without a write, for this may be a moment in which every write is refused.
if last == number then
  return { pack({ true, whole(now), whole(version), since(seen), paused, {}, true }), call('HGET', OWNER, 'answers') }
end
-- The first write of what needs memory is one that a full memory refuses: then nothing has been done.
if grows then call('HSET', OWNER, 'answers', '') end
renew(owner, ttl)
local answers = {}
for index, step in ipairs(unpacked(ARGV[4])) do
  local answer = steps[step[1]](unpack(step, 2, 7))
  refused = refused or not answer[1]
  answers[index] = answer
end
call('HSET', BOARD, 'sequence', whole(sequence), 'fence', whole(fence))
written()
told(channel)
answers = pack(answers)
call('HSET', OWNER, 'number', whole(number), 'serial', serial, 'answers', answers)
return { pack({ true, whole(now), whole(version), since(seen), paused, refused and late() or {}, false }), answers }
`
