-- Adds jobs to the board, after due.lua. It uses sequence of commit.lua.

-- Returns the next number of the board, from which ids and the claim order follow.
local function nextSequence()
  -- The number is at least the clock, so that a server that has lost data assigns no id twice.
  sequence = math.max(sequence + 1, micros)
  return sequence
end

-- Adds a job to the claim order: jobs with a lower rank of their priority come first, then jobs with a lower number. priority: that rank.
local function placeInOrder(id, priority, number, queue)
  local score = whole(priority * 2 ^ 50 + number - 1577836800000000)
  rank(ORDER, id, score)
  if queue then queues.set(id, queue, score) end
end

-- Moves a job to another priority in the claim order, and to a queue. Within it the job keeps the order of its post. Without a priority it
-- keeps its own. Returns the rank of its priority.
local function moveInOrder(id, priority, queue)
  local score = scored[ORDER][id]
  if score == nil then score = call('ZSCORE', ORDER, id) end
  score = tonumber(score or nil) or 2 ^ 51 + nextSequence() - 1577836800000000
  priority = priority or math.floor(score / 2 ^ 50)
  score = whole(priority * 2 ^ 50 + score % 2 ^ 50)
  rank(ORDER, id, score)
  queues.set(id, queue, score)
  return priority
end

-- Adds a job. place: see placeIn. Returns the answer of the step: true and the id of the job.
local function addJob(place, posting, uuid, key, delay, others, window)
  local priority, queue = queues.placeIn(place)
  local number = nextSequence()
  local id = 'job' .. whole(number)
  put(JOBS, id, posting)
  put(ROWS, id, '0:' .. nowText .. ':' .. nowText .. ':')
  placeInOrder(id, priority, number, queue)
  rank(UUIDS, uuid .. ':' .. id, 0)
  if key then takeKey(key, id, uuid, window) end
  local due = delay and whole(now + delay) or '0'
  if others and #others > 0 then
    beginWait(id, priority, due, others)
    due = 'Infinity'
  elseif delay then
    beginDelay(id, due)
  end
  logChange('P' .. id .. placeText(id, priority, due))
  return { true, id }
end
