-- Reads jobs for the sections of a board. summariesOf(ids) returns the summary of each job: its id, its score in claim order, the
-- end of its delay, whether it is claimed, and whether it is cancelled. Each call reads a limited number of jobs, because
-- other clients wait for it.

local ORDER, HELD, CANCELS, RESTING = KEYS[4], KEYS[5], KEYS[10], KEYS[16]
local call = redis.call

local function summariesOf(ids)
  if #ids == 0 then return {} end
  local scores, dues = call('ZMSCORE', ORDER, unpack(ids)), call('ZMSCORE', RESTING, unpack(ids))
  local owners, cancels = call('HMGET', HELD, unpack(ids)), call('HMGET', CANCELS, unpack(ids))
  local summaries = {}
  for at, id in ipairs(ids) do
    -- A job that is being added or removed by hand has no score.
    if scores[at] then
      summaries[#summaries + 1] = { id, scores[at], dues[at] or '0', owners[at] and 1 or 0, cancels[at] and 1 or 0 }
    end
  end
  return summaries
end
