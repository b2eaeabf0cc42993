-- Reads all claimed jobs. It changes nothing.
--
-- KEYS: all. ARGV: none. Returns the summaries.

--- @include "shared/summaries.lua"

local ids, summaries = call('HKEYS', HELD), {}
for from = 1, #ids, 1000 do
  for _, spot in ipairs(summariesOf({ unpack(ids, from, math.min(from + 999, #ids)) })) do summaries[#summaries + 1] = spot end
end
return cmsgpack.pack(summaries)
