-- Keys of jobs and their windows, after jobs.lua and before posting.lua.
--
-- TAKEN has the job of each key. The end of the job removes it, unless the key has a window. WINDOWS has the end of each window, in
-- milliseconds since 1970. A window that is over means the same as none, so no timer is needed. Posts with a key remove a few windows that
-- are over.

-- Whether any key has a window: read once, on first use.
local hasWindows

-- Returns the end of the window of a key; 0 for a key without one.
local function windowEnd(key)
  if hasWindows == nil then hasWindows = call('EXISTS', WINDOWS) == 1 end
  if not hasWindows then return 0 end
  local score = scored[WINDOWS][key]
  if score == nil then score = call('ZSCORE', WINDOWS, key) end
  return tonumber(score or '0') or 0
end

-- Returns the id and the uuid of the job of a key; nothing for a value that names no job, which is overwritten.
local function jobOf(key)
  local holder = key and get(TAKEN, key)
  if holder then return string.match(holder, '^([^:]*):(.*)$') end
end

-- Returns the uuid of the job that has the key, and its id if that job has left the board and its window is not over; nil if the key can be
-- taken.
local function holderOf(key)
  local id, uuid = jobOf(key)
  if not id then return end
  if has(JOBS, id) then return uuid end
  if windowEnd(key) > now then return uuid, id end
end

local hasForgottenWindows = false

-- Removes a few windows that are over, with their keys, once in each script.
local function forgetWindows()
  if hasForgottenWindows or not hasWindows then return end
  hasForgottenWindows = true
  for _, key in ipairs(call('ZRANGEBYSCORE', WINDOWS, '-inf', '(' .. whole(now), 'LIMIT', 0, 16)) do
    if scored[WINDOWS][key] == nil then
      rank(WINDOWS, key, false)
      local id = jobOf(key)
      if not (id and has(JOBS, id)) then put(TAKEN, key, false) end
    end
  end
end

-- Gives a key to a job. window: in milliseconds from now, or nothing.
local function takeKey(key, id, uuid, window)
  put(TAKEN, key, id .. ':' .. uuid)
  if window then
    hasWindows = true
    rank(WINDOWS, key, whole(now + window))
  elseif windowEnd(key) ~= 0 then
    rank(WINDOWS, key, false)
  end
  forgetWindows()
end

-- Frees the key of a job that leaves the board, unless its window is not over.
local function freeKey(key, id)
  if jobOf(key) ~= id or windowEnd(key) > now then return end
  put(TAKEN, key, false)
  if windowEnd(key) ~= 0 then rank(WINDOWS, key, false) end
end
