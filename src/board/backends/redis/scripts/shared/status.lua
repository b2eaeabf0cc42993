-- The status that an owner receives, after board.lua. status(seen) returns, packed: the clock, the version, the changes
-- since the seen version, whether the board is paused, expired owners, the earliest end of a TTL, whether postings and rows
-- are inconsistent, the number of jobs, the secret that signs publications, the damage that was found, and whether ends of jobs
-- are not finished (see due.lua).

local function status(seen)
  -- The time of an owner that was added by hand may be infinite.
  local earliest = math.min(math.max(tonumber(call('ZRANGE', OWNERS, 0, 0, 'WITHSCORES')[2]) or 0, 0), 2 ^ 53)
  local missed = {}
  if seen then missed = since(seen) end
  return pack({
    whole(now), whole(version), missed, paused, expiredOwners(), whole(earliest),
    call('HLEN', JOBS) ~= call('HLEN', ROWS), call('HLEN', ROWS), secret or '', faults,
    call('EXISTS', ENDING) == 1 or (sweepState()),
  })
end
