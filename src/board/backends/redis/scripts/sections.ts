/**
 * Scripts that read parts of a board: the head of the claim order, the next delayed jobs, and the claimed jobs. KEYS: all.
 * They change nothing. Each call reads a limited number of jobs, because other clients wait for it.
 */

/** The summary of each job: id, score in claim order, due time, whether it is claimed, and whether it is cancelled. */
const JOB_SUMMARIES = `
local ORDER, HELD, CANCELS, RESTING = KEYS[4], KEYS[5], KEYS[10], KEYS[16]
local call = redis.call

local function spots(ids)
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
`

/** ARGV: the score to begin after, and the limit. Returns the clock, the jobs, and the score of the last one if there may be more. */
export const RANGE_SOURCE = `${JOB_SUMMARIES}
local ids = {}
local last
local found = call('ZRANGEBYSCORE', ORDER, ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for at = 1, #found, 2 do
  ids[#ids + 1], last = found[at], found[at + 1]
end
local time = call('TIME')
local more = #ids == tonumber(ARGV[2])
return cmsgpack.pack({ time[1] * 1000 + math.floor(time[2] / 1000), spots(ids), more and last or '' })
`

/** ARGV: the time to begin after, and the limit. Returns delayed jobs, by the end of their delay. */
export const DELAYED_SOURCE = `${JOB_SUMMARIES}
return cmsgpack.pack(spots(call('ZRANGEBYSCORE', RESTING, ARGV[1], '+inf', 'LIMIT', 0, ARGV[2])))
`

/** Returns all claimed jobs. */
export const CLAIMED_SOURCE = `${JOB_SUMMARIES}
local ids, summaries = call('HKEYS', HELD), {}
for from = 1, #ids, 1000 do
  for _, spot in ipairs(spots({ unpack(ids, from, math.min(from + 999, #ids)) })) do summaries[#summaries + 1] = spot end
end
return cmsgpack.pack(summaries)
`

/** ARGV: ids. Returns the status of each: 1 on the board, 2 in the trash, 0 neither. */
export const STATUS_SOURCE = `
local statuses = {}
for at, id in ipairs(ARGV) do
  statuses[at] = redis.call('HEXISTS', KEYS[3], id) == 1 and 1 or redis.call('HEXISTS', KEYS[11], id) == 1 and 2 or 0
end
return statuses
`
