-- Reads delayed jobs, by the end of their delay, without the jobs that wait for others. It changes nothing.
--
-- KEYS: all. ARGV: the time to begin after, and the limit. Returns the summaries.

--- @include "shared/summaries.lua"

return cmsgpack.pack(summariesOf(call('ZRANGEBYSCORE', RESTING, ARGV[1], '(+inf', 'LIMIT', 0, ARGV[2])))
