-- Removes arrival times that are not needed any more, after board.lua. Claims that take tokens remove a few of them, but no claim comes
-- after the last one.
--
-- A sweep removes arrival times that have passed, which mean the same as none. It also removes times more than an hour ahead whose key has
-- no limit any more. Each minute one owner sweeps a part of the keys. The time of the last sweep is a field of the board.

local SWEEP_PERIOD_MS, SWEPT_AT_ONCE, FAR_AHEAD_MS = 60000, 2000, 3600000

-- Returns a predicate: whether a limit applies to a key. Names of keys and of records are JSON lists of one text; long ones are hashes. A
-- key or a record with such a name counts as limited, because its text is not known.
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

-- Sweeps a part of the keys, unless an owner has done so within the last minute.
local function sweepRates()
  local swept = tonumber(call('HGET', BOARD, 'limits-swept') or '0') or 0
  if swept <= now and now - swept < SWEEP_PERIOD_MS then return end
  call('HSET', BOARD, 'limits-swept', whole(now))
  removeRates(call('ZRANGEBYSCORE', RATES, '-inf', '(' .. whole(now), 'LIMIT', 0, SWEPT_AT_ONCE))
  local from = whole(now + FAR_AHEAD_MS)
  local ahead = call('ZCOUNT', RATES, from, '+inf')
  if ahead == 0 then return end
  local isLimited, unlimited = limitsByKey(), {}
  -- Each sweep begins at a random key: otherwise the same keys, which may all be limited, would be read each time.
  local offset = ahead > SWEPT_AT_ONCE and micros % (ahead - SWEPT_AT_ONCE + 1) or 0
  for _, key in ipairs(call('ZRANGEBYSCORE', RATES, from, '+inf', 'LIMIT', whole(offset), SWEPT_AT_ONCE)) do
    if not isLimited(key) then unlimited[#unlimited + 1] = key end
  end
  removeRates(unlimited)
end
