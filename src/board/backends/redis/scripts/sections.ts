/**
 * Parts of a board: the head of the claim order, those that wake next, those that are claimed. KEYS: all. Nothing is
 * changed, and each call looks at so many jobs only, because everybody waits for it.
 */

/** What is told of each job: its id, its score in claim order, when it is due, whether it is claimed, and to be given up. */
const JOB_SUMMARIES = `
local ORDER, HELD, CANCELS, RESTING = KEYS[4], KEYS[5], KEYS[10], KEYS[16]
local call = redis.call

local function spots(ids)
  if #ids == 0 then return {} end
  local scores, dues = call('ZMSCORE', ORDER, unpack(ids)), call('ZMSCORE', RESTING, unpack(ids))
  local owners, cancels = call('HMGET', HELD, unpack(ids)), call('HMGET', CANCELS, unpack(ids))
  local told = {}
  for at, id in ipairs(ids) do
    -- One that is being put there, or taken away, by hand has no place in the order.
    if scores[at] then
      told[#told + 1] = { id, scores[at], dues[at] or '0', owners[at] and 1 or 0, cancels[at] and 1 or 0 }
    end
  end
  return told
end
`

/** ARGV: behind which score, and how many. Answers the clock, what is there, and the score of the last if there may be more. */
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

/** ARGV: after which instant, and how many. */
export const DELAYED_SOURCE = `${JOB_SUMMARIES}
return cmsgpack.pack(spots(call('ZRANGEBYSCORE', RESTING, ARGV[1], '+inf', 'LIMIT', 0, ARGV[2])))
`

export const CLAIMED_SOURCE = `${JOB_SUMMARIES}
local ids, told = call('HKEYS', HELD), {}
for from = 1, #ids, 1000 do
  for _, spot in ipairs(spots({ unpack(ids, from, math.min(from + 999, #ids)) })) do told[#told + 1] = spot end
end
return cmsgpack.pack(told)
`

/** ARGV: ids. What became of each: 1 is on the board, 2 in the trash, 0 gone. */
export const STATUS_SOURCE = `
local fates = {}
for at, id in ipairs(ARGV) do
  fates[at] = redis.call('HEXISTS', KEYS[3], id) == 1 and 1 or redis.call('HEXISTS', KEYS[11], id) == 1 and 2 or 0
end
return fates
`
