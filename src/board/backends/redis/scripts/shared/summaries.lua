-- Reads jobs for the sections of a board. summariesOf(ids) returns the summary of each job: its id, its score in claim order, the
-- end of its delay, whether it is claimed, whether it is cancelled, and its queue, which is empty for the default one. Each call reads a limited number of jobs, because
-- other clients wait for it.

local ORDER, HELD, CANCELS, RESTING = KEYS[4], KEYS[5], KEYS[10], KEYS[16]
local QUEUED = KEYS[35]
local call = redis.call

-- The number of jobs for one command: the stack of Lua is limited.
local AT_ONCE = 1000

-- Returns the first jobs among these that are in the default queue, up to a limit.
local function inDefaultQueue(ids, limit)
  local found, isUsed = {}, call('EXISTS', QUEUED) == 1
  for from = 1, #ids, AT_ONCE do
    local to = math.min(from + AT_ONCE - 1, #ids)
    local queues = isUsed and call('HMGET', QUEUED, unpack(ids, from, to)) or {}
    for at = from, to do
      if #found >= limit then return found end
      if not queues[at - from + 1] then found[#found + 1] = ids[at] end
    end
  end
  return found
end

local function summariesOf(ids)
  if #ids == 0 then return {} end
  local scores, dues = call('ZMSCORE', ORDER, unpack(ids)), call('ZMSCORE', RESTING, unpack(ids))
  local owners, cancels = call('HMGET', HELD, unpack(ids)), call('HMGET', CANCELS, unpack(ids))
  local queues = call('EXISTS', QUEUED) == 1 and call('HMGET', QUEUED, unpack(ids)) or {}
  local summaries = {}
  for at, id in ipairs(ids) do
    -- A job that is being added or removed by hand has no score.
    if scores[at] then
      summaries[#summaries + 1] = { id, scores[at], dues[at] or '0', owners[at] and 1 or 0, cancels[at] and 1 or 0, queues[at] or '' }
    end
  end
  return summaries
end
