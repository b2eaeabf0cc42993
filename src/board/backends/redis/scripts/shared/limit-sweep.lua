-- Removes what is left of limits of which nothing is taken, after board.lua: the claims that take tokens remove some of it, and the last of
-- them none.
--
-- Removed are arrival times that have passed, which mean the same as none; and of those that are more than an hour ahead the ones of keys that
-- no limit concerns any more. One owner does so in a minute, for a part of the keys. The time of the last sweep is a field of the board.

local SWEEP_PERIOD, SWEPT_AT_ONCE, AHEAD = 60000, 2000, 3600000

-- Returns a function that says whether any limit concerns a key. Names of keys and of records are JSON lists of one text, or hashes of long
-- ones: it is not known which keys those concern.
local function limitsByKey()
  local exact, beginnings = {}, {}
  for _, name in ipairs(call('HKEYS', RECORDS)) do
    local key = string.match(name, '^limit/(.*)$')
    if key and string.sub(key, -3) == '*"]' then
      beginnings[#beginnings + 1] = string.sub(key, 1, -4)
    elseif key and string.sub(key, 1, 1) == '#' then
      return function() return true end
    elseif key then
      exact[key] = true
    end
  end
  return function(key)
    if exact[key] or string.sub(key, 1, 1) == '#' then return true end
    for _, beginning in ipairs(beginnings) do
      if string.sub(key, 1, #beginning) == beginning then return true end
    end
    return false
  end
end

local function removeRates(keys)
  if #keys == 0 then return end
  call('ZREM', RATES, unpack(keys))
  call('HDEL', INTERVALS, unpack(keys))
end

local function sweepRates()
  local swept = tonumber(call('HGET', BOARD, 'limits-swept') or '0') or 0
  if swept <= now and now - swept < SWEEP_PERIOD then return end
  call('HSET', BOARD, 'limits-swept', whole(now))
  removeRates(call('ZRANGEBYSCORE', RATES, '-inf', '(' .. whole(now), 'LIMIT', 0, SWEPT_AT_ONCE))
  local from = whole(now + AHEAD)
  local ahead = call('ZCOUNT', RATES, from, '+inf')
  if ahead == 0 then return end
  local isLimited, unlimited = limitsByKey(), {}
  -- Each sweep begins at another place: the first ones may be those of limits.
  local offset = ahead > SWEPT_AT_ONCE and micros % (ahead - SWEPT_AT_ONCE + 1) or 0
  for _, key in ipairs(call('ZRANGEBYSCORE', RATES, from, '+inf', 'LIMIT', whole(offset), SWEPT_AT_ONCE)) do
    if not isLimited(key) then unlimited[#unlimited + 1] = key end
  end
  removeRates(unlimited)
end
