-- Reads jobs as of one moment. It changes nothing.
--
-- KEYS: all. ARGV: ids. Returns, packed, the row of each job (false for a missing one) and the indexes of the jobs that wait for others; then
-- the posting of each job.

local rows, postings = redis.call('HMGET', KEYS[3], unpack(ARGV)), redis.call('HMGET', KEYS[2], unpack(ARGV))
local waiting = {}
if redis.call('EXISTS', KEYS[23]) == 1 then
  for at, wait in ipairs(redis.call('HMGET', KEYS[23], unpack(ARGV))) do
    if wait then waiting[#waiting + 1] = at end
  end
end
table.insert(postings, 1, cmsgpack.pack({ rows, waiting }))
return postings
