-- Changes the board: executes a group of steps of one owner. Each step is done or refused separately.
--
-- Groups of one owner have consecutive numbers. The owner's key keeps the number and the answers of the newest group. So a
-- group that is sent again because its answers were lost is answered, but not executed again. A group that arrives too late,
-- or whose predecessor the server has lost, changes nothing.
--
-- KEYS: all, including the owner's. ARGV: the owner's id, the channel, the head [number, seen version, TTL, grows, serial],
-- the steps, the ends of all byte values, and these values as one text. grows: whether the group adds data that stays in memory.
-- serial: distinguishes groups with the same number. Steps refer to byte values by their index, because msgpack in Redis unpacks
-- strings only. The values are one argument, because each argument costs the driver and Redis more than the text of a job.
--
-- Returns false and the number of the newest group if the group was not accepted. Otherwise returns two values: [true, the
-- clock, the version, the changes since the seen version, whether the board is paused, expired owners if a step was refused,
-- whether the group was repeated, the damage that was found, whether the step `finish` has something to do, the jobs that were cancelled
-- because of the end of others], and the answers of
-- all steps.

--- @include "shared/board.lua"
--- @include "shared/writes.lua"
--- @include "shared/limits.lua"
--- @include "shared/jobs.lua"
--- @include "shared/keys.lua"
--- @include "shared/due.lua"
--- @include "shared/history.lua"

local owner, channel = ARGV[1], ARGV[2]
local head = unpacked(ARGV[3])
local number, seen, ttl, grows, serial = head[1], head[2], head[3], head[4], whole(head[5])
-- A value that is not a number, or a key that is not a hash, counts as a missing key.
local kept = redis.pcall('HMGET', OWNER, 'number', 'serial')
local last = tonumber(kept[1] or '-1') or -1
if last ~= number and last ~= number - 1 then return { pack({ false, last }) } end
-- Another group with this number has arrived since, over a former connection. Its owner had received a refusal for it.
if last == number and kept[2] ~= serial then return { pack({ false, last }) } end

local numbers = call('HMGET', BOARD, 'sequence', 'fence')
-- A larger sequence cannot be a score of the claim order: see placeInOrder.
local sequence = counter('sequence', numbers[1], 1577836800000000 + 2 ^ 50 - 2 ^ 20) or 0
-- A fence that is too large is not replaced by a smaller one: the fence never decreases. Other values were never granted as a fence.
local fence = counter('fence', numbers[2], 1e308) or 0
local refused = false

-- Return the byte value with this index, and its size.
local bytesAt, sizeOf
do

local ends = unpacked(ARGV[5])

function bytesAt(index) return string.sub(ARGV[6], (ends[index - 1] or 0) + 1, ends[index]) end

function sizeOf(index) return ends[index] - (ends[index - 1] or 0) end

end

--- @include "shared/posting.lua"
--- @include "shared/batches.lua"
--- @include "shared/steps.lua"
--- @include "shared/batch-steps.lua"

-- A repeated group is answered without a write, because the server may refuse all writes now.
if last == number then
  local valid, noted = pcall(unpacked, call('HGET', OWNER, 'doomed') or '')
  local stillDoomed = valid and type(noted) == 'table' and noted[1] == number and noted[2] or {}
  return { pack({ true, whole(now), whole(version), since(seen), paused, {}, true, faults, false, stillDoomed }), call('HGET', OWNER, 'answers') }
end
-- If the group adds data, the first write is a command that Redis refuses when its memory is full: then nothing was changed.
if grows then call('HSET', OWNER, 'answers', '') end
renew(owner, ttl)
local answers, group = {}, unpacked(ARGV[4])
if #group > 1 then readFor(group) end
for index, step in ipairs(group) do
  mark()
  local done, answer = pcall(steps[step[1]], unpack(step, 2, 10))
  if not done then
    undo()
    local problem = errorText(answer)
    fault('the step ' .. step[1] .. ' was refused: ' .. problem)
    answer = { false, 'damaged', problem }
  end
  refused = refused or not answer[1]
  answers[index] = answer
end
put(BOARD, 'sequence', whole(sequence))
put(BOARD, 'fence', whole(fence))
flushWrites()
queues.forget()
trimHistory()
publish(channel)
for _, name in ipairs(changedRecords) do redis.pcall('PUBLISH', channel .. ':records', name) end
for uuid in pairs(changedBatches) do redis.pcall('PUBLISH', channel .. ':batches', uuid) end
answers = pack(answers)
call('HSET', OWNER, 'number', whole(number), 'serial', serial, 'answers', answers)
-- The next groups leave this field as it is: it is read by the number.
if #doomed > 0 then call('HSET', OWNER, 'doomed', pack({ number, doomed })) end
local dead = refused and expiredOwners() or {}
local isUnfinished = call('EXISTS', ENDING) == 1 or excessBatches() > 0
return { pack({ true, whole(now), whole(version), since(seen), paused, dead, false, faults, isUnfinished, doomed }), answers }
