-- Changes the due times of jobs: by delays, by cancel requests, and because jobs wait for others. After jobs.lua.
--
-- A job that waits has a field in WAITS: its rank in claim order, the end of its delay or 0, and a word for each job on which it depends:
-- `=ID;` if that must be done, `~ID;` if it must have ended in any way. It is in RESTING with an infinite time. For each of these words
-- DEPENDENTS has `ID:dependent`, in lexicographic order.
--
-- One script changes at most MAX_RELEASED jobs that depend on the jobs that it ends, because other clients wait meanwhile. A job that has
-- ended while others still depend on it is in ENDING, with the cancel request for them, or nothing if it is done. The step `finish`
-- continues; any owner may send it. It also finds jobs that have ended without any of this: by a release that knows no dependencies, or by hand.

local MAX_RELEASED, MAX_SWEPT = 1000, 200

-- Whether any job is delayed, cancelled, or waits for others: read once, on first use.
local hasDelays, hasCancels, hasWaits

-- The functions of queues are in a table: a script may have at most 200 local variables outside of blocks.
local queues = {}
do

-- Whether any job is in a queue other than the default one: read once, on first use.
local isUsed
-- The queues from which this script has removed jobs.
local left = {}

-- Returns the queue of a job; nil for the default one.
function queues.of(id)
  if isUsed == nil then isUsed = call('EXISTS', QUEUED) == 1 end
  return isUsed and get(QUEUED, id) or nil
end

-- Moves a job to a queue, or out of all others to the default one, which is nil. score: its score in claim order.
function queues.set(id, queue, score)
  local former = queues.of(id)
  if former and former ~= queue then
    rank(ORDER .. ':' .. former, id, false)
    rank(RESTING .. ':' .. former, id, false)
    left[former] = true
  end
  if queue then
    isUsed = true
    put(QUEUED, id, queue)
    put(QUEUES, queue, '1')
    rank(ORDER .. ':' .. queue, id, score)
  elseif former then
    put(QUEUED, id, false)
  end
end

-- Removes a job that leaves the board from its queue.
function queues.leave(id)
  local queue = queues.of(id)
  if not queue then return end
  rank(ORDER .. ':' .. queue, id, false)
  put(QUEUED, id, false)
  left[queue] = true
end

-- Forgets the queues that have no jobs any more. To be called after flushWrites, as the last write: it cannot fail.
function queues.forget()
  for queue in pairs(left) do
    if redis.pcall('EXISTS', ORDER .. ':' .. queue) == 0 then redis.pcall('HDEL', QUEUES, queue) end
  end
end

-- Parses the place of a job as a step has it: the rank of its priority, or the rank and its queue as `2:bulk`. Returns the rank, and the
-- queue or nil for the default one.
function queues.placeIn(place)
  if type(place) == 'number' then return place end
  local priority, queue = string.match(place, '^(%d):?(.*)$')
  return tonumber(priority), queue ~= '' and queue or nil
end

end

local function endDelay(id)
  if hasDelays == nil then hasDelays = call('EXISTS', RESTING) == 1 end
  if not hasDelays then return end
  rank(RESTING, id, false)
  local queue = queues.of(id)
  if queue then rank(RESTING .. ':' .. queue, id, false) end
end

local function beginDelay(id, due)
  hasDelays = true
  rank(RESTING, id, due)
  local queue = queues.of(id)
  -- Reads of a queue leave out the jobs that wait for others.
  if queue then rank(RESTING .. ':' .. queue, id, due ~= 'inf' and due or false) end
end

-- Returns the part of a log entry that says where the job is in the queue: its rank, due time and queue. Default values are left out.
local function placeText(id, priority, due)
  local queue = queues.of(id)
  if queue then return ':' .. priority .. ':' .. due .. ':' .. queue end
  if due ~= '0' then return ':' .. priority .. ':' .. due end
  return tonumber(priority) == 2 and '' or ':' .. priority
end

local function cancelJob(id, request)
  hasCancels = true
  if has(CANCELS, id) then return end
  put(CANCELS, id, request)
  endDelay(id)
  logChange('X' .. id)
end

local function endCancel(id)
  if hasCancels == nil then hasCancels = call('EXISTS', CANCELS) == 1 end
  if hasCancels then put(CANCELS, id, false) end
end

local function isAnyWaiting()
  if hasWaits == nil then hasWaits = call('EXISTS', WAITS) == 1 end
  return hasWaits
end

local function isWaiting(id) return isAnyWaiting() and has(WAITS, id) end

-- The dependents that this script has added to each job: their number, and each of them by `ID:number`.
local addedCounts, added = {}, {}

-- Makes the job wait for the others, which are on the board.
local function beginWait(id, priority, due, others)
  hasWaits = true
  put(WAITS, id, priority .. ':' .. due .. ':' .. table.concat(others, ';') .. ';')
  beginDelay(id, 'inf')
  for _, word in ipairs(others) do
    local other = string.sub(word, 2)
    local count = (addedCounts[other] or 0) + 1
    note(addedCounts, other, count)
    note(added, other .. ':' .. count, id)
    rank(DEPENDENTS, other .. ':' .. id, 0)
  end
end

-- Changes the rank and the due time that a waiting job will have when it waits no more.
local function moveWait(id, priority, due)
  local others = string.match(get(WAITS, id) or '', '^%d:%d+:(.*)$')
  if others then put(WAITS, id, priority .. ':' .. due .. ':' .. others) end
end

-- Removes the dependencies of a job that leaves the board while it waits for others.
local function endWait(id)
  local wait = isAnyWaiting() and get(WAITS, id)
  if not wait then return end
  for other in string.gmatch(wait, '[=~]([^;]+);') do rank(DEPENDENTS, other .. ':' .. id, false) end
  put(WAITS, id, false)
end

-- Returns the ids of the jobs among these that are not on the board; nil if all are on it.
local function findGone(others)
  local gone
  for _, word in ipairs(others) do
    local id = string.sub(word, 2)
    if not has(ROWS, id) or string.find(id, ';', 1, true) then
      gone = gone or {}
      table.insert(gone, id)
    end
  end
  return gone
end

-- Makes a job claimable that does not wait for other jobs any more, when its delay is over.
local function makeReady(id, priority, due)
  put(WAITS, id, false)
  if has(CANCELS, id) or tonumber(due) <= now then due = '0' end
  if due == '0' then endDelay(id) else beginDelay(id, due) end
  logChange('R' .. id .. placeText(id, priority, due))
end

-- The jobs that this script has cancelled because a job on which they depend is in the trash. The client then ends the jobs among them that
-- never ran.
local doomed = {}

-- Removes from a job that waits the dependency on another one, which has ended. With a cancel request, the other one is in the trash: then
-- the job is cancelled if it needs the other one to be done.
local function endDependency(id, other, request)
  local wait = get(WAITS, id)
  if not wait then return end
  local priority, due, others = string.match(wait, '^(%d):(%d+):(.*)$')
  if not priority then
    fault('the field ' .. id .. ' of ' .. WAITS .. ' was not valid; that job waits until it is cancelled')
    return
  end
  local from, to = string.find(others, '=' .. other .. ';', 1, true)
  if from and request then
    doomed[#doomed + 1] = id
    return cancelJob(id, request)
  end
  if not from then from, to = string.find(others, '~' .. other .. ';', 1, true) end
  if not from then return end
  others = string.sub(others, 1, from - 1) .. string.sub(others, to + 1)
  if others == '' then return makeReady(id, priority, due) end
  put(WAITS, id, priority .. ':' .. due .. ':' .. others)
end

-- The number of dependents that this script has released or cancelled.
local released = 0

-- Returns the jobs that depend on this one, as many as this script may still change, and whether these are all.
local function dependentsOf(id)
  local prefix, limit = id .. ':', MAX_RELEASED - released
  local found, listed = {}, {}
  if limit > 0 then listed = call('ZRANGEBYLEX', DEPENDENTS, '[' .. prefix, '(' .. id .. ';', 'LIMIT', 0, limit) end
  for _, member in ipairs(listed) do
    if scored[DEPENDENTS][member] ~= false then found[#found + 1] = string.sub(member, #prefix + 1) end
  end
  for at = 1, addedCounts[id] or 0 do
    local dependent = added[prefix .. at]
    if scored[DEPENDENTS][prefix .. dependent] then found[#found + 1] = dependent end
  end
  return found, #listed < limit
end

-- Releases the jobs that depend on a job that has ended, or requests to cancel them. Returns whether these are all.
local function endDependencies(id, request)
  local dependents, areAll = dependentsOf(id)
  for _, dependent in ipairs(dependents) do
    rank(DEPENDENTS, id .. ':' .. dependent, false)
    endDependency(dependent, id, request)
  end
  released = released + #dependents
  if not areAll then put(ENDING, id, request or '') end
  return areAll
end

-- Returns the request that cancels the jobs that depend on this one; nil if it is not in the trash.
local function cancelRequestFor(id)
  if not has(TRASH, id) then return end
  return pack({ who = 'an unknown owner', reason = id .. ', on which it depends, is in the trash' })
end

-- Ends the dependencies on jobs that have left the board without this script. Looks at some of them, and returns whether there are more.
local function sweepDependents()
  local isDue, cursor = sweepState()
  if not isDue then return false end
  for _ = 1, MAX_SWEPT do
    local member = call('ZRANGEBYLEX', DEPENDENTS, cursor == '' and '-' or '(' .. cursor, '+', 'LIMIT', 0, 1)[1]
    if not member then
      cursor = ''
      break
    end
    local id = string.match(member, '^(.*):[^:]*$')
    cursor = id and id .. ';' or member
    if not id then
      rank(DEPENDENTS, member, false)
    elseif not has(ROWS, id) then
      endDependencies(id, cancelRequestFor(id))
    end
  end
  put(BOARD, 'swept', whole(now) .. ':' .. cursor)
  return cursor ~= ''
end

-- Releases further dependents of the jobs in ENDING. Returns whether there is more to do.
local function continueEnds()
  local isMore = false
  for _, id in ipairs(call('HKEYS', ENDING)) do
    if released >= MAX_RELEASED then return true end
    local request = get(ENDING, id)
    if endDependencies(id, request ~= '' and request or nil) then put(ENDING, id, false) else isMore = true end
  end
  return isMore or sweepDependents()
end
