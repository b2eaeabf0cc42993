-- Reads whether jobs are on the board or in the trash. It changes nothing.
--
-- KEYS: all. ARGV: ids. Returns for each: 1 if it is on the board, 2 if it is in the trash, 0 otherwise.

local statuses = {}
for at, id in ipairs(ARGV) do
  statuses[at] = redis.call('HEXISTS', KEYS[3], id) == 1 and 1 or redis.call('HEXISTS', KEYS[11], id) == 1 and 2 or 0
end
return statuses
