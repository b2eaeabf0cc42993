-- The steps of commit.lua, one function for each kind of step, after batches.lua. A step returns a list: true and its results,
-- or false and the reason of the refusal.
--
-- It uses owner, sequence and fence of commit.lua. A byte value is given by its index.

local steps = {}

-- Reads what the steps of a group begin with: the rows of their jobs, with one call. It also reads the postings of claims: to read a short
-- posting costs less than a call that asks whether it exists.
local readFor
do

local BY_ROW = { claim = true, consume = true, abandon = true, trash = true, discard = true, release = true }
local MAX_POSTING_BYTES = 1024

local function readAtOnce(key, ids, kept)
  for from = 1, #ids, 1000 do
    local part = { unpack(ids, from, math.min(from + 999, #ids)) }
    local values = redis.pcall('HMGET', key, unpack(part))
    -- The error of a key of another type belongs to the steps that need it.
    if values.err then return end
    for at, id in ipairs(part) do stored[key][id] = kept(values[at]) end
  end
end

function readFor(group)
  local ids, claimed = {}, {}
  for _, step in ipairs(group) do
    if BY_ROW[step[1]] then ids[#ids + 1] = step[2] end
    if step[1] == 'claim' and sizeOf(step[5]) <= MAX_POSTING_BYTES then claimed[#claimed + 1] = step[2] end
  end
  readAtOnce(ROWS, ids, function(row) return row end)
  readAtOnce(JOBS, claimed, function(posting) return posting ~= false end)
end

end

local function removeJob(id, row, key, uuid)
  releaseResources(id, row)
  if row.owner == '' then endDelay(id) end
  if uuid then rank(UUIDS, uuid .. ':' .. id, false) end
  put(JOBS, id, false)
  put(ROWS, id, false)
  rank(ORDER, id, false)
  queues.leave(id)
  endCancel(id)
  endWait(id)
  if key then freeKey(key, id) end
end

-- at: the time of the entry, or nothing for now.
local function moveToTrash(id, entry, at)
  put(TRASH, id, whole(at or now) .. ':' .. bytesAt(entry))
  rank(TRASHED, id, whole(version + #changes + 1))
  logChange('T' .. id)
end

-- Adds the end of a job, which was logged just now, to the history and to its batch, and releases the jobs that depend on it. request: for
-- a job that has gone to the trash, the request that cancels the jobs that depend on it.
local function noteEnd(id, uuid, record, keep, request)
  if record then recordEnd(uuid, bytesAt(record), keep) end
  if isAnyWaiting() then endDependencies(id, request and bytesAt(request)) end
  endMember(id, request ~= nil)
end

function steps.post(place, bytes, uuid, key, delay, others, batch, member, window)
  local gone = others and findGone(others)
  if gone then return { false, 'dependency', gone } end
  local why, reason
  if batch then why, reason = batchRefusal(batch, uuid, member) end
  if why then return { false, 'batch', why, reason } end
  local holder, ended = holderOf(key)
  if holder then return { false, 'key', holder, ended } end
  local answer = addJob(place, bytesAt(bytes), uuid, key, delay, others, window)
  if batch then addMember(batch, uuid, answer[2]) end
  return answer
end

-- Replaces the posting of an unclaimed job by a newer posting with the same key.
function steps.replace(id, revision, place, bytes, key, delay, window)
  local row = rowOf(id)
  if not row or not has(JOBS, id) then return { false, 'gone' } end
  local holder, uuid = jobOf(key)
  if row.owner ~= '' or row.revision ~= revision or holder ~= id or has(CANCELS, id) then return { false, 'taken' } end
  put(JOBS, id, bytesAt(bytes))
  row.revision, row.written = revision + 1, nowText
  putRow(id, row)
  local priority = moveInOrder(id, queues.placeIn(place))
  takeKey(key, id, uuid, window)
  local due = delay and whole(now + delay) or '0'
  if isWaiting(id) then
    moveWait(id, priority, due)
    due = 'Infinity'
  elseif delay then
    beginDelay(id, due)
  else
    endDelay(id)
  end
  logChange('U' .. id .. placeText(id, priority, due))
  return { true, row.revision }
end

-- Returns the first of these resources that cannot be granted now; nil if all can.
local function firstBlocked(exclusive, shared)
  for _, name in ipairs(exclusive) do
    if has(EXCLUSIVE, name) or shareCount(name) > 0 then return name end
  end
  for _, name in ipairs(shared) do
    if has(EXCLUSIVE, name) then return name end
  end
end

-- isFirst: whether it would be the first run of a job after others, which is not granted once the job is cancelled.
function steps.claim(id, revision, who, bytes, exclusive, shared, limits, isFirst)
  if paused then return { false, 'paused' } end
  local row = rowOf(id)
  if not row or not hasPosting(id) then return { false, 'gone' } end
  if row.owner ~= '' or row.revision ~= revision then return { false, 'taken' } end
  if isWaiting(id) and (isFirst or not has(CANCELS, id)) then return { false, 'waits' } end
  -- Above 2^53 two claims could get the same fence.
  if fence >= 2 ^ 53 - 1 then return { false, 'fences', BOARD } end
  local name = exclusive and firstBlocked(exclusive, shared)
  if name then return { false, 'resource', name } end
  local refusal, slots, arrivals, rates
  if limits then refusal, slots, arrivals, rates = examineLimits(limits) end
  if refusal then return refusal end
  for _, wanted in ipairs(exclusive or {}) do put(EXCLUSIVE, wanted, id) end
  for _, wanted in ipairs(shared or {}) do setShareCount(wanted, shareCount(wanted) + 1) end
  if slots then takeLimits(slots, arrivals, rates) end
  if exclusive or (slots and #slots > 0) then
    put(GRANTED, id, pack({ exclusive or {}, shared or {}, slots or {} }))
    row.more = '+'
  end
  endDelay(id)
  put(JOBS, id, bytesAt(bytes))
  put(HELD, id, owner .. ':' .. who)
  row.revision, row.written, row.owner = revision + 1, nowText, owner
  putRow(id, row)
  fence = math.max(math.floor(fence) + 1, micros)
  logChange('C' .. id)
  if row.more ~= '' then logChange('H' .. id) end
  return { true, row.revision, fence, arrivals }
end

function steps.tokens(key, revision, wants)
  return takeTokens(key, revision, wants)
end

-- Returns the row if this owner still holds the claim at this revision.
local function ownRow(id, revision)
  local row = rowOf(id)
  if row and row.owner == owner and row.revision == revision then return row end
end

function steps.consume(id, revision, key, uuid, record, keep)
  local row = ownRow(id, revision)
  if not row then return { false } end
  removeJob(id, row, key, uuid)
  logChange('D' .. id)
  noteEnd(id, uuid, record, keep)
  return { true }
end

-- Gives a claimed job back with the given posting.
-- queue: the queue to which it is moved, empty for the default one; nil if it stays.
local function giveBack(id, row, revision, bytes, delay, queue)
  releaseClaim(id, row)
  put(JOBS, id, bytesAt(bytes))
  row.revision, row.written = revision + 1, nowText
  putRow(id, row)
  -- A cancelled job is due at once.
  local due = delay and not has(CANCELS, id) and whole(now + delay) or '0'
  -- The delay begins in the new queue.
  local priority = queue and moveInOrder(id, nil, queue ~= '' and queue or nil)
  if due ~= '0' then beginDelay(id, due) end
  logChange('A' .. id)
  if queue then logChange('U' .. id .. placeText(id, priority, due)) end
  return { true }
end

function steps.abandon(id, revision, bytes, delay, queue)
  local row = ownRow(id, revision)
  if not row then return { false } end
  return giveBack(id, row, revision, bytes, delay, queue)
end

-- Ends the claim of whichever owner holds it at this revision.
function steps.release(id, revision, bytes)
  local row = rowOf(id)
  if not row or not has(JOBS, id) then return { false, 'gone' } end
  if row.revision ~= revision then return { false, 'changed' } end
  if row.owner == '' then return { false, 'unclaimed' } end
  return giveBack(id, row, revision, bytes)
end

function steps.trash(id, revision, entry, key, uuid, record, keep, request)
  local row = ownRow(id, revision)
  if not row then return { false } end
  removeJob(id, row, key, uuid)
  moveToTrash(id, entry)
  noteEnd(id, uuid, record, keep, request)
  return { true }
end

function steps.discard(id, revision, entry, key, uuid, record, keep, request, at)
  local row = rowOf(id)
  if not row then return { false, 'gone' } end
  if row.owner ~= '' or row.revision ~= revision then return { false, 'taken' } end
  removeJob(id, row, key, uuid)
  moveToTrash(id, entry, at)
  noteEnd(id, uuid, record, keep, request)
  return { true }
end

function steps.cancel(id, request)
  if not has(ROWS, id) then return { false } end
  cancelJob(id, bytesAt(request))
  return { true }
end

function steps.gate(closed)
  if closed ~= paused then
    paused = closed
    put(BOARD, 'paused', closed and '1' or '0')
    logChange(closed and 'G1' or 'G0')
  end
  return { true }
end

local function removeFromTrash(id)
  put(TRASH, id, false)
  rank(TRASHED, id, false)
end

function steps.restore(id, place, bytes, uuid, key, others, batch, window)
  if not has(TRASH, id) then return { false, 'gone' } end
  local gone = others and findGone(others)
  if gone then return { false, 'dependency', gone } end
  local holder, ended = holderOf(key)
  -- Its own window does not keep a job in the trash.
  if holder and ended ~= id then return { false, 'key' } end
  if batch and isRestoredTwice(batch, uuid, id) then return { false, 'duplicate' } end
  removeFromTrash(id)
  local answer = addJob(place, bytesAt(bytes), uuid, key, nil, others, window)
  if batch then restoreMember(batch, uuid, id, answer[2]) end
  return answer
end

function steps.purge(id)
  if not has(TRASH, id) then return { false } end
  removeFromTrash(id)
  return { true }
end

function steps.register(field, instance, bytes)
  local current = get(ENTITIES, field)
  if current and string.match(current, '^[^:]*:([^:]*):') ~= instance then return { false } end
  put(ENTITIES, field, owner .. ':' .. instance .. ':' .. bytesAt(bytes))
  return { true }
end

function steps.unregister(field, instance)
  local current = get(ENTITIES, field)
  if current and string.match(current, '^[^:]*:([^:]*):') == instance then put(ENTITIES, field, false) end
  return { true }
end

-- Repairs a job whose posting was removed or added by hand.
function steps.repair(id)
  local row, posting = rowOf(id), has(JOBS, id)
  if row and not posting then
    removeJob(id, row)
    logChange('D' .. id)
    noteEnd(id)
  elseif posting and not row then
    putRow(id, { revision = 0, posted = nowText, written = nowText, owner = '', more = '' })
    -- The claim order uses the time in the id, as for a normal post.
    local number = tonumber(string.match(id, '^job(%d+)$') or '')
    -- A number with too many digits would get a score that no client can read.
    placeInOrder(id, 2, number and number < 2 ^ 53 and number or nextSequence())
    logChange('P' .. id)
  end
  return { true }
end

-- Releases further jobs that depend on jobs which have ended, and removes batches that are not kept. Returns whether there is more to do.
function steps.finish()
  local isMore = continueEnds()
  return { true, forgetBatches() or isMore }
end

-- The names of the records that this group of steps has changed.
local changedRecords = {}

-- The functions that only the step `write` uses are in a block: a script may have at most 200 local variables outside of blocks.
do

-- Returns the next revision of a record. It is at least the clock, so that a server that has lost data assigns none twice.
local recordRevision
local function nextRevision()
  recordRevision = recordRevision or counter('revision', call('HGET', BOARD, 'revision'), 2 ^ 53 - 2 ^ 20) or 0
  recordRevision = math.max(recordRevision + 1, micros)
  put(BOARD, 'revision', whole(recordRevision))
  return whole(recordRevision)
end

local function unlessEmpty(word) return word ~= '' and word or nil end

-- Parses the posts of a write: nine words for each job (place, length, uuid, key, delay, batch, the job of the batch on whose behalf it is
-- posted, window, number of dependencies), and a word for each dependency; words are empty where there is nothing.
local function postsIn(words)
  local posts, at = {}, 1
  while at <= #words do
    local count = tonumber(words[at + 8])
    posts[#posts + 1] = {
      place = words[at], length = tonumber(words[at + 1]), uuid = words[at + 2], key = unlessEmpty(words[at + 3]),
      delay = tonumber(words[at + 4]), batch = unlessEmpty(words[at + 5]), member = unlessEmpty(words[at + 6]),
      window = tonumber(words[at + 7]), others = { unpack(words, at + 9, at + 8 + count) },
    }
    at = at + 9 + count
  end
  return posts
end

-- Returns why the posts cannot be done, and the index of the first that cannot; nil if all can.
local function firstRefused(posts)
  local taken = {}
  for at, post in ipairs(posts) do
    if post.key and (taken[post.key] or holderOf(post.key)) then return { false, 'post', at - 1 } end
    if post.key then taken[post.key] = true end
    local gone = findGone(post.others)
    if gone then return { false, 'dependency', gone } end
  end
  local names = {}
  for at, post in ipairs(posts) do
    if post.batch then
      local why, reason = batchRefusal(post.batch, post.uuid, post.member)
      local name = openName(post.batch, post.uuid)
      if names[name] then why = why or 'duplicate' end
      if why then return { false, 'batch', why, reason or '', at - 1 } end
      names[name] = true
    end
  end
end

-- Changes records and posts jobs: all of it, or nothing. names, revisions and lengths have one element for each change: the name of the
-- record, the revision that it must have (empty if it must not exist), and the length of its part of the byte value (empty to remove the
-- record).
function steps.write(names, revisions, lengths, posts, bytes)
  for at, name in ipairs(names) do
    local found = get(RECORDS, name)
    if (found and string.match(found, '^(%d+):') or '') ~= revisions[at] then return { false, 'record', at - 1 } end
  end
  posts = postsIn(posts)
  local refused = firstRefused(posts)
  if refused then return refused end
  local values, from = bytesAt(bytes), 1
  local function take(length)
    from = from + length
    return string.sub(values, from - length, from - 1)
  end
  local newRevisions, ids = {}, {}
  for at, name in ipairs(names) do
    if lengths[at] == '' then
      newRevisions[at] = ''
      put(RECORDS, name, false)
    else
      newRevisions[at] = nextRevision()
      put(RECORDS, name, newRevisions[at] .. ':' .. take(tonumber(lengths[at])))
    end
  end
  for _, post in ipairs(posts) do
    ids[#ids + 1] = addJob(post.place, take(post.length), post.uuid, post.key, post.delay, post.others, post.window)[2]
    if post.batch then addMember(post.batch, post.uuid, ids[#ids]) end
  end
  limitsChanged(names)
  for _, name in ipairs(names) do changedRecords[#changedRecords + 1] = name end
  return { true, newRevisions, ids }
end

end
