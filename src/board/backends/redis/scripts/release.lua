-- Releases what a dead owner held. A living owner keeps its claims.
--
-- KEYS: all, including that owner's. ARGV: that owner's id, the channel, 1 if the owner itself leaves, and the TTL of the
-- caller in milliseconds. Returns the damage that was found, as sentences.
--
-- An owner that cannot be released is postponed, each time for longer: at the head of the expired owners it would block the
-- others. A living owner renews its time by itself.

--- @include "shared/board.lua"
--- @include "shared/writes.lua"
--- @include "shared/limits.lua"
--- @include "shared/jobs.lua"

local id, channel, itself, ttl = ARGV[1], ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])

local function postpone(times)
  call('ZADD', OWNERS, whole(now + math.min(ttl * 2 ^ math.min(times, 8), 2 ^ 39)), id)
end

local function release()
  for job, holder in pairs(all(HELD)) do
    if string.sub(holder, 1, #id + 1) == id .. ':' then
      local row = rowOf(job)
      if row and row.owner == id then
        releaseClaim(job, row)
        putRow(job, row)
        logChange('L' .. job)
      else
        put(HELD, job, false)
      end
    end
  end
  for field, entity in pairs(all(ENTITIES)) do
    if string.sub(entity, 1, #id + 1) == id .. ':' then put(ENTITIES, field, false) end
  end
  flushWrites()
end

if itself then
  call('DEL', OWNER)
elseif call('EXISTS', OWNER) == 1 then
  local times = redis.pcall('HINCRBY', OWNER, 'late', 1)
  postpone(type(times) == 'number' and times or 8)
  return faults
end
-- A full memory does not refuse this first write.
call('ZREM', OWNERS, id)
local done, thrown = pcall(release)
if not done then
  postpone(3)
  undo()
  fault('the claims of dead owner ' .. id .. ' could not be released yet: ' .. errorText(thrown))
  return faults
end
publish(channel)
return faults
