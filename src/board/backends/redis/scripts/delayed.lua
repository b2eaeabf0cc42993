-- Reads delayed jobs, by the end of their delay, without the jobs that wait for others. It changes nothing.
--
-- KEYS: all. ARGV: the time to begin with or after, the number of jobs to visit, the queue (empty for
-- the jobs of all queues), and the limit. Returns the summaries, the number of
-- jobs that were visited, and the end of the delay of the last one.

--- @include "shared/summaries.lua"

local queue = ARGV[3]
local isDefault = queue == 'default'
local key = (queue == '' or isDefault) and RESTING or RESTING .. ':' .. queue
local ids = call('ZRANGEBYSCORE', key, ARGV[1], '(+inf', 'LIMIT', 0, ARGV[2])
local visited, last = #ids, ids[#ids] and call('ZSCORE', key, ids[#ids]) or ''
if isDefault then ids = inDefaultQueue(ids, tonumber(ARGV[4])) end
return cmsgpack.pack({ summariesOf(ids), visited, last })
