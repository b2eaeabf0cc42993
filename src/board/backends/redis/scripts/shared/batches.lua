-- Batches, after posting.lua: the script that ends a job of a batch counts it, and the last end posts the callback.
--
-- BATCHES has up to four fields for each batch: `uuid` is its definition; `uuid:state` its state, see putBatch; `uuid:done` and
-- `uuid:failed` are its callbacks. MEMBERS has `batch:uuid` for the id of each job on the board that is counted. BATCH_JOBS has
-- `batch:o:uuid` for each of them, and `batch:f:id` for each job that has ended in the trash, in lexicographic order.
--
-- A callback is the rank of its job, its delay or nothing, its gaps, and its posting without the values that are different each time. A gap
-- is where such a value belongs: a letter and the number of bytes before it. u is the uuid, g the generation, and t, d and f are the
-- numbers of jobs.

-- The most entries of jobs, and the most batches, that one script removes: other clients wait meanwhile.
local MAX_FORGOTTEN, MAX_FORGOTTEN_BATCHES = 1000, 100

-- Whether any job on the board is counted: read once, on first use.
local hasMembers

local function isAnyCounted()
  if hasMembers == nil then hasMembers = call('EXISTS', MEMBERS) == 1 end
  return hasMembers
end

-- The batches whose status this script has changed, by uuid.
local changedBatches = {}

local function openName(uuid, job) return uuid .. ':o:' .. job end
local function failedName(uuid, id) return uuid .. ':f:' .. id end

-- Returns the state of a batch; nil if there is none.
local function batchOf(uuid)
  local state = get(BATCHES, uuid .. ':state')
  if not state then return end
  local generation, sealed, ended, open, failed, total, request =
    string.match(state, '^(%d+):([01]):(%d+):(%d+):(%d+):(%d+):(.*)$')
  if not generation then
    fault('the field ' .. uuid .. ':state of ' .. BATCHES .. ' was not valid; the jobs of that batch are not counted any more')
    return
  end
  return {
    generation = tonumber(generation), isSealed = sealed == '1', ended = tonumber(ended), open = tonumber(open),
    failed = tonumber(failed), total = tonumber(total), request = request,
  }
end

-- Writes the state of a batch: its generation, whether it is sealed, the time of its end or 0, the numbers of open, failed and all jobs,
-- and the cancel request or nothing.
local function putBatch(uuid, batch)
  local numbers = { batch.generation, batch.isSealed and 1 or 0, batch.ended, batch.open, batch.failed, batch.total }
  for at, number in ipairs(numbers) do numbers[at] = whole(number) end
  put(BATCHES, uuid .. ':state', table.concat(numbers, ':') .. ':' .. batch.request)
end

-- Returns who has cancelled the batch and the reason; nothing if it is not cancelled.
local function cancellationOf(batch)
  if batch.request == '' then return end
  local isRecord, request = pcall(unpacked, batch.request)
  if not isRecord or type(request) ~= 'table' then request = {} end
  return tostring(request.who or 'an unknown owner'), tostring(request.reason or 'cancelled')
end

-- Posts the callback of a batch that has ended.
local postCallback
do

-- The namespace of the uuids of callbacks, as in model/job-batch.ts.
local NAMESPACE = string.gsub('6f3c7a5252a84ee18d040c9b6ad3f7c5', '%x%x', function(digits)
  return string.char(tonumber(digits, 16))
end)

-- Returns the uuid of a name: version 5, as in model/job-batch.ts.
local function uuidOf(name)
  local hash = redis.sha1hex(NAMESPACE .. name)
  local variant = string.format('%x', tonumber(string.sub(hash, 17, 17), 16) % 4 + 8)
  return table.concat({
    string.sub(hash, 1, 8), string.sub(hash, 9, 12), '5' .. string.sub(hash, 14, 16), variant .. string.sub(hash, 18, 20),
    string.sub(hash, 21, 32),
  }, '-')
end

function postCallback(uuid, batch)
  local name = uuid .. (batch.failed > 0 and ':failed' or ':done')
  local callback = get(BATCHES, name)
  if not callback then return end
  local priority, delay, gaps, from = string.match(callback, '^(%d):([^:]*):(%w*):()')
  local queue = string.match(delay or '', ';(%x*)$')
  if not priority then
    fault('the field ' .. name .. ' of ' .. BATCHES .. ' was not valid; that callback is not posted')
    return
  end
  local job = uuidOf(uuid .. '\n' .. whole(batch.generation))
  local done = batch.total - batch.open - batch.failed
  local fillers = { u = job, g = pack(batch.generation), t = pack(batch.total), d = pack(done), f = pack(batch.failed) }
  local parts, at = {}, from
  for letter, offset in string.gmatch(gaps, '(%a)(%d+)') do
    parts[#parts + 1] = string.sub(callback, at, from + offset - 1)
    parts[#parts + 1] = fillers[letter]
    at = from + offset
  end
  parts[#parts + 1] = string.sub(callback, at)
  queue = queue and string.gsub(queue, '%x%x', function(byte) return string.char(tonumber(byte, 16)) end)
  addJob(priority .. ':' .. (queue or ''), table.concat(parts), job, nil, tonumber(string.match(delay, '^[^;]*')))
end

end

-- Ends the batch if it is sealed and no job of it is open; writes its state.
local function closeBatch(uuid, batch)
  if batch.isSealed and batch.ended == 0 and batch.open <= 0 then
    batch.ended = now
    rank(ENDED_BATCHES, uuid, whole(nextSequence()))
    changedBatches[uuid] = true
    if batch.request == '' then postCallback(uuid, batch) end
  end
  putBatch(uuid, batch)
end

-- Opens the batch again. If it has ended, it begins its next generation.
local function reopenBatch(uuid, batch, isSealed)
  if batch.ended ~= 0 then
    batch.generation = batch.generation + 1
    rank(ENDED_BATCHES, uuid, false)
  end
  batch.ended, batch.request, batch.isSealed = 0, '', isSealed
end

-- Returns why the batch refuses a job with this uuid; nil if it takes it. member: the uuid of the job on whose behalf it is posted, or
-- nothing.
local function batchRefusal(uuid, job, member)
  local batch = batchOf(uuid)
  if not batch then return 'unknown' end
  local _, reason = cancellationOf(batch)
  if reason then return 'cancelled', reason end
  if batch.isSealed and not (member and isRanked(BATCH_JOBS, openName(uuid, member))) then return 'sealed' end
  if isRanked(BATCH_JOBS, openName(uuid, job)) then return 'duplicate' end
end

-- Counts a job that was posted.
local function addMember(uuid, job, id)
  local batch = batchOf(uuid)
  batch.open, batch.total = batch.open + 1, batch.total + 1
  putBatch(uuid, batch)
  hasMembers = true
  put(MEMBERS, id, uuid .. ':' .. job)
  rank(BATCH_JOBS, openName(uuid, job), 0)
end

-- Counts a job that has ended.
local function endMember(id, isTrashed)
  local member = isAnyCounted() and get(MEMBERS, id)
  if not member then return end
  put(MEMBERS, id, false)
  local uuid, job = string.match(member, '^([^:]*):(.*)$')
  if not uuid or not isRanked(BATCH_JOBS, openName(uuid, job)) then return end
  rank(BATCH_JOBS, openName(uuid, job), false)
  local batch = batchOf(uuid)
  if not batch then return end
  batch.open = math.max(batch.open - 1, 0)
  if isTrashed then
    batch.failed = batch.failed + 1
    rank(BATCH_JOBS, failedName(uuid, id), 0)
  end
  closeBatch(uuid, batch)
end

-- Returns whether the batch counts a job in the trash as failed, and also has an open job with the same uuid.
local function isRestoredTwice(uuid, job, id)
  return isRanked(BATCH_JOBS, failedName(uuid, id)) and isRanked(BATCH_JOBS, openName(uuid, job))
end

-- Counts a job that was restored from the trash, where it had the former id. Opens a batch that has ended.
local function restoreMember(uuid, job, former, id)
  local batch = isRanked(BATCH_JOBS, failedName(uuid, former)) and batchOf(uuid)
  if not batch then return end
  rank(BATCH_JOBS, failedName(uuid, former), false)
  batch.failed = math.max(batch.failed - 1, 0)
  batch.open = batch.open + 1
  hasMembers = true
  put(MEMBERS, id, uuid .. ':' .. job)
  rank(BATCH_JOBS, openName(uuid, job), 0)
  if batch.ended ~= 0 then reopenBatch(uuid, batch, true) end
  changedBatches[uuid] = true
  putBatch(uuid, batch)
end

-- Removes batches that are not kept: the batches that ended first. The entries of their jobs are removed in parts, and a batch stays in
-- ENDED_BATCHES until all of them are. Returns whether there is more to remove.
local function forgetBatches()
  local excess, left = excessBatches(), MAX_FORGOTTEN
  if excess == 0 then return false end
  local oldest = call('ZRANGE', ENDED_BATCHES, 0, math.min(excess, MAX_FORGOTTEN_BATCHES) - 1)
  for _, uuid in ipairs(oldest) do
    -- This script may have opened it again.
    if scored[ENDED_BATCHES][uuid] == nil then
      for _, part in ipairs({ '', ':state', ':done', ':failed' }) do put(BATCHES, uuid .. part, false) end
      rank(BATCH_ORDER, uuid, false)
      local names = call('ZRANGEBYLEX', BATCH_JOBS, '[' .. uuid .. ':', '(' .. uuid .. ';', 'LIMIT', 0, left)
      for _, name in ipairs(names) do rank(BATCH_JOBS, name, false) end
      left = left - #names
      if left <= 0 then return true end
      rank(ENDED_BATCHES, uuid, false)
    end
  end
  return excess > #oldest
end
