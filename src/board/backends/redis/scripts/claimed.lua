-- Reads all claimed jobs. It changes nothing.
--
-- KEYS: all. ARGV: none. Returns the summaries, each with 1 at its end if the claim holds resources or slots, else 0.

--- @include "shared/summaries.lua"

local ROWS = KEYS[3]
local ids, summaries = call('HKEYS', HELD), {}
for from = 1, #ids, 1000 do
  local spots = summariesOf({ unpack(ids, from, math.min(from + 999, #ids)) })
  local listed = {}
  for at, spot in ipairs(spots) do listed[at] = spot[1] end
  local rows = #listed > 0 and call('HMGET', ROWS, unpack(listed)) or {}
  for at, spot in ipairs(spots) do
    spot[7] = rows[at] and string.sub(rows[at], -1) == '+' and 1 or 0
    summaries[#summaries + 1] = spot
  end
end
return cmsgpack.pack(summaries)
