-- Slots and tokens of limits, after writes.lua and before jobs.lua.
--
-- The revision of the limits is a field of the board; each change of a record by which claims are limited increases it. A claim that was
-- prepared with an earlier revision is refused.
--
-- The arrival time of a key is its score in RATES, in milliseconds since 1970 with fractions (GCRA, see model/limits.ts). A time that has
-- passed means the same as none, so each claim with a rate removes a few of these times. The field of the key in INTERVALS is the rate by which
-- the tokens were taken: interval, space, burst.
--
-- The functions that only this file uses are in a block: a script may have at most 200 local variables outside of blocks.

local limitsChanged, releaseSlots, examineLimits, takeTokens, takeLimits
do

-- The revision as it is at this step of the batch; read on first use.
local limitsRevision

local function currentLimitsRevision()
  limitsRevision = limitsRevision or counter('limits', call('HGET', BOARD, 'limits'), 2 ^ 53 - 2) or 0
  return limitsRevision
end

-- Notes that the records with these names were changed.
function limitsChanged(names)
  for _, name in ipairs(names) do
    if string.match(name, '^limit/') or string.match(name, '^limit%-hold/') or string.match(name, '^flow%-setting/') then
      limitsRevision = currentLimitsRevision() + 1
      put(BOARD, 'limits', whole(limitsRevision))
      return
    end
  end
end

-- Returns the number of jobs that hold a slot of the key. A value that is not a number counts as none, and is reported.
local function slotCount(key)
  local value = get(SLOTS, key)
  local count = tonumber(value or '0')
  if count and count >= 0 and count <= 2 ^ 53 and count == math.floor(count) then return count end
  fault('the field ' .. key .. ' of ' .. SLOTS .. ' was not a valid number; it counts as 0 until the jobs that run have ended')
  return 0
end

-- Releases a slot of each of these keys.
function releaseSlots(keys)
  for _, key in ipairs(keys) do
    local count = slotCount(key) - 1
    put(SLOTS, key, count > 0 and whole(count) or false)
  end
end

-- Returns the arrival time of the key at the rate by which its tokens were taken; nil if there is none.
local function arrivalOf(key)
  local score = scored[RATES][key]
  if score == nil then score = call('ZSCORE', RATES, key) end
  return tonumber(score or nil)
end

-- Returns the arrival time of the key at a rate, given as texts; nil if there is none. If the tokens were taken by another rate, as many
-- are missing as before, but no more than the burst.
local function arrivalAt(key, burst, interval)
  local arrival, exact = arrivalOf(key), micros / 1000
  if not arrival then return nil end
  local rate, known = interval .. ' ' .. burst, get(INTERVALS, key)
  if known == rate then return arrival end
  local former = known and tonumber(string.match(known, '^%S+'))
  if former and former > 0 and arrival > exact then
    arrival = exact + math.min(tonumber(burst), (arrival - exact) / former) * tonumber(interval)
    rank(RATES, key, string.format('%.4f', arrival))
  end
  put(INTERVALS, key, rate)
  return arrival
end

-- Sets the arrival time of a key, and the rate by which its tokens were taken.
local function setArrival(key, arrival, rate)
  rank(RATES, key, arrival)
  if get(INTERVALS, key) ~= rate then put(INTERVALS, key, rate) end
end

local hasForgotten = false

-- Removes a few arrival times that have passed, once in each script.
local function forgetArrivals()
  if hasForgotten then return end
  hasForgotten = true
  for _, key in ipairs(call('ZRANGEBYSCORE', RATES, '-inf', '(' .. whole(now), 'LIMIT', 0, 16)) do
    if scored[RATES][key] == nil then
      rank(RATES, key, false)
      put(INTERVALS, key, false)
    end
  end
end

-- Checks whether the limits permit a claim. Takes nothing yet, but applies changed rates.
--
-- limits: the revision, and five words for each limit: the key, the number of its slots, the tokens that the claim takes, the burst, and
-- the interval in milliseconds; empty where there is none. Returns a refusal; or nil, the keys whose slots the claim takes, a list with
-- each key that has a rate and its new arrival time, and the rates of these keys.
function examineLimits(limits)
  if tonumber(limits[1]) ~= currentLimitsRevision() then return { false, 'limits' } end
  local slots, arrivals, rates, exact = {}, {}, {}, micros / 1000
  local former = {}
  for at = 2, #limits, 5 do
    if limits[at + 2] ~= '' then former[limits[at]] = arrivalAt(limits[at], limits[at + 3], limits[at + 4]) end
  end
  for at = 2, #limits, 5 do
    local key, most, cost = limits[at], tonumber(limits[at + 1]), tonumber(limits[at + 2])
    if most then
      if slotCount(key) >= most then return { false, 'limit', key } end
      slots[#slots + 1] = key
    end
    if cost then
      local interval = tonumber(limits[at + 4])
      local arrival, allowed = math.max(former[key] or 0, exact) + cost * interval, math.max(tonumber(limits[at + 3]), cost) * interval
      -- Smaller differences are rounding errors of a number of this size.
      if arrival - exact > allowed + 0.0005 then return { false, 'limit', key, string.format('%.4f', arrival - allowed) } end
      arrivals[#arrivals + 1], arrivals[#arrivals + 2] = key, string.format('%.4f', arrival)
      rates[#rates + 1] = limits[at + 4] .. ' ' .. limits[at + 3]
    end
  end
  return nil, slots, arrivals, rates
end

-- Takes tokens of a key for calls outside of claims, in their order.
--
-- wants: the burst, the interval in milliseconds, and the tokens of each call; empty to check only the revision. Returns a refusal at
-- another revision; otherwise true, the number of calls whose tokens were taken, and the time from which the tokens of the next call are
-- free, if there is one.
function takeTokens(key, revision, wants)
  if revision ~= currentLimitsRevision() then return { false, 'limits' } end
  if #wants == 0 then return { true, 0 } end
  local burst, interval = tonumber(wants[1]), tonumber(wants[2])
  local arrival, exact, taken, free = arrivalAt(key, wants[1], wants[2]) or 0, micros / 1000, 0, nil
  for at = 3, #wants do
    local cost = tonumber(wants[at])
    local moved, allowed = math.max(arrival, exact) + cost * interval, math.max(burst, cost) * interval
    -- Smaller differences are rounding errors of a number of this size.
    if moved - exact > allowed + 0.0005 then
      free = string.format('%.4f', moved - allowed)
      break
    end
    arrival, taken = moved, taken + 1
  end
  if taken > 0 then
    setArrival(key, string.format('%.4f', arrival), wants[2] .. ' ' .. wants[1])
    forgetArrivals()
  end
  return { true, taken, free }
end

-- Takes the slots and tokens of a claim, as examineLimits has returned them.
function takeLimits(slots, arrivals, rates)
  for _, key in ipairs(slots) do put(SLOTS, key, whole(slotCount(key) + 1)) end
  for at, rate in ipairs(rates) do setArrival(arrivals[2 * at - 1], arrivals[2 * at], rate) end
  if #arrivals > 0 then forgetArrivals() end
end

end
