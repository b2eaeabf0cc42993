-- Rows of jobs, and the resources and slots that their claims hold, after limits.lua.

-- The rows (by ROWS), and whether there is a posting (by JOBS), of the jobs that steps of this script are about, as they were before the
-- script. A job that is in neither table is read when a step needs it.
local stored = { [ROWS] = {}, [JOBS] = {} }

-- Returns the row of a job as a text; false if it has none.
local function rowText(id)
  local row = pending[ROWS][id]
  if row == nil then row = stored[ROWS][id] end
  if row == nil then row = call('HGET', ROWS, id) end
  return row
end

-- Returns whether the job has a posting.
local function hasPosting(id)
  if pending[JOBS][id] == nil and stored[JOBS][id] ~= nil then return stored[JOBS][id] end
  return has(JOBS, id)
end

-- Parses a row: revision, time of the post, time of the last write, the owner's id or nothing, and a + if resources or slots are granted.
local function rowOf(id)
  local row = rowText(id)
  if not row then return end
  local revision, posted, written, owner, more = string.match(row, '^(%d+):(%d+):(%d+):([^+]*)(%+?)$')
  return { revision = tonumber(revision), posted = posted, written = written, owner = owner, more = more }
end

local function putRow(id, row)
  put(ROWS, id, whole(row.revision) .. ':' .. row.posted .. ':' .. row.written .. ':' .. row.owner .. row.more)
end

-- Returns the names of the exclusive and of the shared resources, and the keys of the slots, in a record of grants; nil for an invalid
-- record. A record of an older release has no slots.
local function namesIn(record)
  local isRecord, lists = pcall(unpacked, record)
  if not isRecord or type(lists) ~= 'table' then return end
  for which = 1, 2 do
    if type(lists[which]) ~= 'table' then return end
    for _, name in ipairs(lists[which]) do
      if type(name) ~= 'string' then return end
    end
  end
  local slots = lists[3] or {}
  if type(slots) ~= 'table' then return end
  for _, key in ipairs(slots) do
    if type(key) ~= 'string' then return end
  end
  return lists[1], lists[2], slots
end

-- Counts the jobs that share each resource, from the records of grants. The second result is whether all records can be read.
local function countShares()
  local counts, allValid = {}, true
  for _, record in pairs(all(GRANTED)) do
    local exclusive, shared = namesIn(record)
    allValid = allValid and exclusive ~= nil
    for _, name in ipairs(shared or {}) do counts[name] = (counts[name] or 0) + 1 end
  end
  return counts, allValid
end

-- Returns the number of jobs that share the resource. If it is not known, the resource counts as shared: a job that waits is
-- better than two owners.
local function shareCount(name)
  local value = get(SHARED, name)
  if not value then return 0 end
  local count = tonumber(value)
  if count and count >= 0 and count <= 2 ^ 53 and count == math.floor(count) then return count end
  fault('the field ' .. name .. ' of ' .. SHARED .. ' was not a valid number; the jobs are counted again')
  local counts, allValid = countShares()
  return math.max(counts[name] or 0, allValid and 0 or 1)
end

local function setShareCount(name, count) put(SHARED, name, count > 0 and whole(count) or false) end

-- Releases the resources of a job whose record cannot be read: exclusive ones are found by its id, shared ones are counted again.
local function releaseUnreadableResources(id)
  fault('the field ' .. id .. ' of ' .. GRANTED .. ' was not a valid record; the resources of that job are released')
  for name, holder in pairs(all(EXCLUSIVE)) do
    if holder == id then put(EXCLUSIVE, name, false) end
  end
  local counts, allValid = countShares()
  if not allValid then return end
  for name in pairs(all(SHARED)) do setShareCount(name, counts[name] or 0) end
end

-- Releases the resources and slots of a job; the caller writes the row.
local function releaseResources(id, row)
  put(HELD, id, false)
  if row.more == '' then return end
  local record = get(GRANTED, id)
  if not record then return end
  local exclusive, shared, slots = namesIn(record)
  releaseSlots(slots or {})
  for _, name in ipairs(exclusive or {}) do
    if get(EXCLUSIVE, name) == id then put(EXCLUSIVE, name, false) end
  end
  for _, name in ipairs(shared or {}) do setShareCount(name, shareCount(name) - 1) end
  put(GRANTED, id, false)
  if not exclusive then releaseUnreadableResources(id) end
end

-- Releases the claim of a job; the caller writes the row.
local function releaseClaim(id, row)
  releaseResources(id, row)
  row.owner, row.more = '', ''
end
