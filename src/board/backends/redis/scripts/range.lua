-- Reads the jobs after a position in the claim order. It changes nothing.
--
-- KEYS: all. ARGV: the score to begin after, the limit, and the queue; empty for the jobs of all queues. Returns the clock in milliseconds, the
-- summaries, and the score of the last job that was visited if there may be more, else an empty text.
--
-- The jobs of the default queue are found among those of all queues: fewer than the limit may be returned, although there are more.

--- @include "shared/summaries.lua"

local queue = ARGV[3]
local isDefault = queue == 'default'
local key = (queue == '' or isDefault) and ORDER or ORDER .. ':' .. queue
local ids = {}
local last
local found = call('ZRANGEBYSCORE', key, ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for at = 1, #found, 2 do
  ids[#ids + 1], last = found[at], found[at + 1]
end
local more = #ids == tonumber(ARGV[2])
if isDefault then ids = inDefaultQueue(ids, #ids) end
local time = call('TIME')
return cmsgpack.pack({ time[1] * 1000 + math.floor(time[2] / 1000), summariesOf(ids), more and last or '' })
