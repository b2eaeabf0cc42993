-- The history of the jobs that have ended last, after writes.lua. HISTORY has their records by uuid; ENDED has their uuids in the order of
-- their ends.

-- The most records that one script removes, when the history keeps fewer than before: other clients wait meanwhile.
local MAX_TRIMMED = 2000

-- The number of records to keep; nil if this script adds none.
local keptRecords

-- Adds the end of a job, which was logged just now.
local function recordEnd(uuid, record, keep)
  put(HISTORY, uuid, record)
  rank(ENDED, uuid, whole(version + #changes))
  keptRecords = keep
end

-- Removes the oldest records that are not kept, after flushWrites.
local function trimHistory()
  if not keptRecords then return end
  local excess = call('ZCARD', ENDED) - keptRecords
  if excess <= 0 then return end
  local removed, uuids = call('ZPOPMIN', ENDED, math.min(excess, MAX_TRIMMED)), {}
  for at = 1, #removed, 2 do uuids[#uuids + 1] = removed[at] end
  callInParts('HDEL', HISTORY, uuids, #uuids)
end
