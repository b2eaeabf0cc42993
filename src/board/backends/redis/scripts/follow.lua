-- Begins or ends to follow jobs: their changes are published on the channel of the owner.
--
-- KEYS: all, including the owner's. ARGV: the owner's id, 1 to begin or 0 to end, and the ids of the jobs. Returns the status
-- of each job, packed: 0 if it has left the board, 1 if it is in the trash, else [claimed, cancelled, revision].
--
-- The owners that follow a job are one field of FOLLOWERS, separated by commas. It is removed with the job. Owners that no
-- longer live are removed when another one begins or ends to follow the job. Nothing is written for a job that the owner
-- follows already, so that a repeated question for its status costs little.

local ROWS, HELD, CANCELS, TRASH = KEYS[3], KEYS[5], KEYS[10], KEYS[11]
local OWNERS, FOLLOWERS = KEYS[14], KEYS[19]
local owner, begins = ARGV[1], ARGV[2] == '1'
local call = redis.call

-- The first call fails if the type of the key does not fit, before anything is changed. A full memory does not refuse this
-- first write, and then none of the later ones either.
call('HDEL', FOLLOWERS, '')
local statuses = {}
for at = 3, #ARGV do
  local id = ARGV[at]
  local row = call('HGET', ROWS, id)
  if row then
    statuses[at - 2] = {
      call('HEXISTS', HELD, id) == 1, call('HEXISTS', CANCELS, id) == 1, tonumber(string.match(row, '^(%d+)')) or 0,
    }
  else
    statuses[at - 2] = call('HEXISTS', TRASH, id)
  end
  local field = call('HGET', FOLLOWERS, id) or ''
  local follows = string.find(',' .. field .. ',', ',' .. owner .. ',', 1, true) ~= nil
  if follows ~= begins or not row then
    local owners = {}
    for other in string.gmatch(row and field or '', '[^,]+') do
      if other ~= owner and call('ZSCORE', OWNERS, other) then owners[#owners + 1] = other end
    end
    if begins and row then owners[#owners + 1] = owner end
    if #owners > 0 then
      -- A full memory refuses this write: then the caller looks again later.
      redis.pcall('HSET', FOLLOWERS, id, table.concat(owners, ','))
    else
      call('HDEL', FOLLOWERS, id)
    end
  end
end
return cmsgpack.pack(statuses)
