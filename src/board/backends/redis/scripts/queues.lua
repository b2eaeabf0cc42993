-- Returns the queues that have jobs, and the number of jobs of each, packed: [name, count, …]. It changes nothing.
--
-- KEYS: all keys of the board, in their usual order. ARGV: none.

local ORDER, QUEUES = KEYS[4], KEYS[36]
-- The default queue has no sorted set of its own, so that plain jobs do not pay for one: it has the jobs that no named queue has.
local rest = redis.call('ZCARD', ORDER)
local found = {}
for _, queue in ipairs(redis.call('HKEYS', QUEUES)) do
  local count = redis.call('ZCARD', ORDER .. ':' .. queue)
  rest = rest - count
  if count > 0 then found[#found + 1], found[#found + 2] = queue, count end
end
if rest > 0 then found[#found + 1], found[#found + 2] = 'default', rest end
return cmsgpack.pack(found)
