-- Adds an owner, and creates the board if there is none.
--
-- KEYS: all, including the owner's. ARGV: the owner's id, the channel, the TTL in milliseconds, 1 if the board may be
-- created, the supported format, and a secret for a board that has none.
--
-- Returns [true, whether the board was created] and the owner's status. Returns [false, format] for a board that cannot be
-- opened; the format is 0 if there is no board.

--- @include "shared/board.lua"
--- @include "shared/status.lua"

local id, channel, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local mayCreate, format = ARGV[4] == '1', tonumber(ARGV[5])
local boardFormat = call('HGET', BOARD, 'format')
if not boardFormat and not mayCreate then return { pack({ false, 0 }) } end
if boardFormat and not (tonumber(boardFormat) and tonumber(boardFormat) <= format) then return { pack({ false, boardFormat }) } end
-- A full memory does not refuse this first write, so an owner may join to drain a board.
call('DEL', OWNER)
if not boardFormat then call('HSET', BOARD, 'format', whole(format), 'paused', '0', 'version', '0') end
if not secret then
  secret = ARGV[6]
  call('HSET', BOARD, 'secret', secret)
end
call('HSET', OWNER, 'number', '0')
renew(id, ttl)
-- An owner without the right to publish fails here, and not in the middle of a change.
call('PUBLISH', channel .. ':joined', '')
return { pack({ true, not boardFormat }), status() }
