-- The steps of commit.lua that create and change batches, after steps.lua.

-- Creates an empty batch. A callback is nil where there is none.
function steps.createBatch(uuid, definition, done, failed)
  if has(BATCHES, uuid .. ':state') then return { false } end
  put(BATCHES, uuid, bytesAt(definition))
  put(BATCHES, uuid .. ':done', done and bytesAt(done) or false)
  put(BATCHES, uuid .. ':failed', failed and bytesAt(failed) or false)
  putBatch(uuid, { generation = 1, isSealed = false, ended = 0, open = 0, failed = 0, total = 0, request = '' })
  rank(BATCH_ORDER, uuid, whole(nextSequence()))
  return { true }
end

-- Seals, cancels or reopens a batch. Returns its state: the generation, whether it is sealed, the time of its end or 0, the numbers of
-- open, failed and all jobs, and who has cancelled it and why.
-- total, generation, isSealed and ended: of a batch that is carried from another board.
function steps.changeBatch(uuid, kind, request, total, generation, isSealed, ended)
  local batch = batchOf(uuid)
  if not batch then return { false } end
  if kind == 'seal' then
    batch.isSealed = true
  elseif kind == 'reopen' then
    reopenBatch(uuid, batch, false)
  elseif kind == 'carry' then
    batch.total, batch.generation, batch.isSealed, batch.ended = total, generation, isSealed, ended
    batch.request = request and bytesAt(request) or ''
    if ended ~= 0 then rank(ENDED_BATCHES, uuid, whole(nextSequence())) end
  elseif batch.ended == 0 then
    batch.isSealed, batch.request = true, bytesAt(request)
  end
  closeBatch(uuid, batch)
  changedBatches[uuid] = true
  local who, reason = cancellationOf(batch)
  return {
    true, batch.generation, batch.isSealed, batch.ended, batch.open, batch.failed, batch.total, who, reason,
  }
end
