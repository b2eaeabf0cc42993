-- Reads the jobs after a position in the claim order. It changes nothing.
--
-- KEYS: all. ARGV: the score to begin after, and the limit. Returns the clock in milliseconds, the summaries, and the score
-- of the last job if there may be more, else an empty text.

--- @include "shared/summaries.lua"

local ids = {}
local last
local found = call('ZRANGEBYSCORE', ORDER, ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for at = 1, #found, 2 do
  ids[#ids + 1], last = found[at], found[at + 1]
end
local time = call('TIME')
local more = #ids == tonumber(ARGV[2])
return cmsgpack.pack({ time[1] * 1000 + math.floor(time[2] / 1000), summariesOf(ids), more and last or '' })
