-- Slots and tokens of limits, after writes.lua and before jobs.lua.
--
-- The revision of the limits is a field of the board; each change of a record by which claims are limited increases it. A claim that was
-- chosen by other limits is refused.
--
-- The arrival time of a key is its score in RATES, in milliseconds since 1970 with fractions (GCRA, see model/limits.ts). A time that
-- has passed means the same as none, so each claim with a rate removes a few of those.

-- The revision as it is at this step of the batch; read on first use.
local limitsRevision

local function currentLimitsRevision()
  limitsRevision = limitsRevision or counter('limits', call('HGET', BOARD, 'limits'), 2 ^ 53 - 2) or 0
  return limitsRevision
end

-- Notes that the records with these names were changed.
local function limitsChanged(names)
  for _, name in ipairs(names) do
    if string.match(name, '^limit/') or string.match(name, '^limit%-hold/') then
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

local function releaseSlots(keys)
  for _, key in ipairs(keys) do
    local count = slotCount(key) - 1
    put(SLOTS, key, count > 0 and whole(count) or false)
  end
end

local function arrivalOf(key)
  local score = scored[RATES][key]
  if score == nil then score = call('ZSCORE', RATES, key) end
  return tonumber(score or nil)
end

local hasForgotten = false
local function forgetArrivals()
  if hasForgotten then return end
  hasForgotten = true
  for _, key in ipairs(call('ZRANGEBYSCORE', RATES, '-inf', '(' .. whole(now), 'LIMIT', 0, 16)) do
    if scored[RATES][key] == nil then rank(RATES, key, false) end
  end
end

-- Finds out whether a claim keeps its limits: a list with the revision, and for each limit the key, its slots, the time that the claim
-- takes and the time that may be taken, in milliseconds; empty where there is none. Returns a refusal; or nil, the keys of which
-- the claim takes a slot, and a list with the new arrival time behind each key with a rate. Nothing is changed yet.
local function examineLimits(limits)
  if tonumber(limits[1]) ~= currentLimitsRevision() then return { false, 'limits' } end
  local slots, arrivals, exact = {}, {}, micros / 1000
  for at = 2, #limits, 4 do
    local key, most, cost, burst = limits[at], tonumber(limits[at + 1]), tonumber(limits[at + 2]), tonumber(limits[at + 3])
    if most then
      if slotCount(key) >= most then return { false, 'limit', key } end
      slots[#slots + 1] = key
    end
    if cost then
      local arrival = math.max(arrivalOf(key) or 0, exact) + cost
      -- Smaller differences are rounding errors of a number of this size.
      if arrival - exact > burst + 0.0005 then return { false, 'limit', key, string.format('%.4f', arrival - burst) } end
      arrivals[#arrivals + 1], arrivals[#arrivals + 2] = key, string.format('%.4f', arrival)
    end
  end
  return nil, slots, arrivals
end

-- Takes tokens of a key for calls outside of claims, in their order: a list with the time that each takes, and behind it the time that may be
-- taken, in milliseconds. Returns a refusal at another revision; else true, the number of calls whose tokens were taken, and the time from
-- which those of the next call are free, if they are not.
local function takeTokens(key, revision, wants)
  if revision ~= currentLimitsRevision() then return { false, 'limits' } end
  local arrival, exact, taken, free = arrivalOf(key) or 0, micros / 1000, 0, nil
  for at = 1, #wants, 2 do
    local moved, burst = math.max(arrival, exact) + tonumber(wants[at]), tonumber(wants[at + 1])
    -- Smaller differences are rounding errors of a number of this size.
    if moved - exact > burst + 0.0005 then
      free = string.format('%.4f', moved - burst)
      break
    end
    arrival, taken = moved, taken + 1
  end
  if taken > 0 then
    rank(RATES, key, string.format('%.4f', arrival))
    forgetArrivals()
  end
  return { true, taken, free }
end

local function takeLimits(slots, arrivals)
  for _, key in ipairs(slots) do put(SLOTS, key, whole(slotCount(key) + 1)) end
  for at = 1, #arrivals, 2 do rank(RATES, arrivals[at], arrivals[at + 1]) end
  if #arrivals > 0 then forgetArrivals() end
end
