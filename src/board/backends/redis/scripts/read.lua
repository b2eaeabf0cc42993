-- Reads jobs as of one moment. It changes nothing.
--
-- KEYS: all. ARGV: ids. Returns three values for each id, one after the other: the row, the posting, and 1 if it waits for others; false
-- for a missing one.

local rows, postings = redis.call('HMGET', KEYS[3], unpack(ARGV)), redis.call('HMGET', KEYS[2], unpack(ARGV))
local waits = redis.call('HMGET', KEYS[23], unpack(ARGV))
local found = {}
for at = 1, #ARGV do
  found[3 * at - 2], found[3 * at - 1], found[3 * at] = rows[at], postings[at], waits[at] and 1
end
return found
