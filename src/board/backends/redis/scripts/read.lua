-- Reads jobs as of one moment. It changes nothing.
--
-- KEYS: all. ARGV: ids. Returns the row and the posting of each id, alternately; false for a missing one.

local rows, postings = redis.call('HMGET', KEYS[3], unpack(ARGV)), redis.call('HMGET', KEYS[2], unpack(ARGV))
local both = {}
for at = 1, #ARGV do
  both[2 * at - 1], both[2 * at] = rows[at], postings[at]
end
return both
