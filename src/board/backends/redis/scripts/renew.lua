-- Renews the owner's key, and returns the changes that the owner has missed.
--
-- KEYS: all, including the owner's. ARGV: the owner's id, its TTL in milliseconds, the version that it has seen (or an empty
-- text), and the numbers of its newest answered and newest sent group.
--
-- Returns [true] and the owner's status. Returns [false, the number of the newest group or -1] if the key is missing, or if
-- the server has lost changes that it had confirmed.

--- @include "shared/board.lua"
--- @include "shared/status.lua"
--- @include "shared/limit-sweep.lua"

local id, ttl, seen = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
-- A value that is not a number, or a key that is not a hash, counts as a missing key.
local last = tonumber(redis.pcall('HGET', OWNER, 'number') or '-1') or -1
if last < tonumber(ARGV[4]) or last > tonumber(ARGV[5]) then return { pack({ false, last }) } end
renew(id, ttl)
-- If the keys were changed by hand, the sweep may fail. The owner must be renewed all the same.
pcall(sweepRates)
return { pack({ true }), status(seen) }
