-- Functions of batches: groups of jobs that are counted to their ends. Functions that post, end and restore jobs call them, in the same
-- transaction.
--
-- There are no counters that transactions share. The open jobs are the rows of the table jobs with the number of the batch, and the failed
-- jobs are the rows of batch_failures. Each post adds a row of its own to batch_posts. So posts and ends do not wait for each other's rows.
--
-- | transaction | locks | what follows |
-- |---|---|---|
-- | post | the open job on whose behalf it is, then the row of the batch, both FOR KEY SHARE | neither does that job end before it commits, nor is the batch sealed |
-- | end of a job | after its row: an unclaimed job of the batch, FOR KEY SHARE, if one is free | it ends later, so this end is not the last one |
-- | end of a job, where no unclaimed job is free | the row of the batch: FOR KEY SHARE if it is not sealed, otherwise FOR NO KEY UPDATE | the seal and the end come one after the other; of the last two ends, the second one finds no open job |
-- | restoration | the row of the batch, FOR NO KEY UPDATE | the batch ends before it, and is opened again, or after it |
-- | seal, cancellation, reopening | the row of the batch, FOR UPDATE | no post and no last end is under way at the same time |
--
-- While a batch has unclaimed jobs, the ends of its jobs do not wait for each other. An end that has found an unclaimed job is not the last
-- one: its lock keeps that job from ending before it has committed. An end that waits for the row of the batch has locked the rows of all
-- jobs that it ends. So the last of all ends gets the row of the batch, and finds no open job.
--
-- Order of locks: rows of jobs, then of followers, then of batches by their numbers. A transaction that has locked a batch does not wait
-- for the row of a job afterwards, so no deadlock is possible.

-- Adds the posts of a batch to its total. Its row must be locked. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.add_posts(p_batch bigint)
RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_jobs bigint;
BEGIN
  WITH added AS (DELETE FROM :SCHEMA.batch_posts WHERE batch = p_batch RETURNING jobs)
  SELECT sum(jobs) INTO v_jobs FROM added;
  IF v_jobs IS NOT NULL THEN UPDATE :SCHEMA.batches SET total = greatest(least(total::numeric + v_jobs, 9223372036854775807), 0)
    WHERE number = p_batch; END IF;
END $function$;

-- Notifies the sessions that listen to changes of batches. The name of the channel ends with p_board and `_b`. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.notify_batch(p_board integer, p_uuid text)
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  PERFORM pg_notify(':CHANNEL' || p_board || '_b', p_uuid);
END $function$;

-- Removes the batches of a board that ended first: all but MAX_ENDED_BATCHES of the ended batches. Leaves batches that another
-- transaction changes now. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.forget_batches(p_board integer)
RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_sort TO off SET enable_bitmapscan TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_ended timestamptz;
  v_number bigint;
  v_old bigint[];
BEGIN
  SELECT ended_at, number INTO v_ended, v_number FROM :SCHEMA.batches WHERE board = p_board AND ended_at IS NOT NULL
  ORDER BY ended_at DESC, number DESC OFFSET :MAX_ENDED_BATCHES LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  SELECT array_agg(number) INTO v_old FROM (
    SELECT number FROM :SCHEMA.batches
    WHERE board = p_board AND ended_at IS NOT NULL AND (ended_at, number) <= (v_ended, v_number) FOR UPDATE SKIP LOCKED) AS locked;
  DELETE FROM :SCHEMA.batch_failures WHERE batch = ANY(v_old);
  DELETE FROM :SCHEMA.batch_posts WHERE batch = ANY(v_old);
  DELETE FROM :SCHEMA.batch_callbacks WHERE batch = ANY(v_old);
  DELETE FROM :SCHEMA.batches WHERE number = ANY(v_old);
END $function$;

-- Ends a batch if it is sealed and no job of it is open, and posts its callback unless it is cancelled. Locks its row. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.close_batch(p_batch bigint)
RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_sort TO off SET enable_bitmapscan TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_batch record;
  v_failed bigint;
BEGIN
  PERFORM FROM :SCHEMA.batches WHERE number = p_batch AND sealed AND ended_at IS NULL FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  -- This is a statement of its own, so that it sees what was committed while the lock was awaited.
  PERFORM FROM :SCHEMA.jobs WHERE batch = p_batch ORDER BY uuid DESC LIMIT 1;
  IF FOUND THEN RETURN; END IF;
  PERFORM :SCHEMA.add_posts(p_batch);
  UPDATE :SCHEMA.batches SET ended_at = clock_timestamp() WHERE number = p_batch RETURNING * INTO v_batch;
  IF v_batch.cancelled_by IS NULL THEN
    SELECT count(*) INTO v_failed FROM :SCHEMA.batch_failures WHERE batch = p_batch;
    BEGIN
      PERFORM :SCHEMA.post_callback(v_batch.board, p_batch, v_batch.uuid, v_batch.generation, v_batch.total, v_failed);
    EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
      -- The callback was changed by hand. The job must end all the same.
      RAISE WARNING 'batch %: its callback cannot be posted: %', v_batch.uuid, SQLERRM;
    END;
  END IF;
  PERFORM :SCHEMA.notify_batch(v_batch.board, v_batch.uuid);
  PERFORM :SCHEMA.forget_batches(v_batch.board);
END $function$;

-- Ends these batches if they have no open job any more, after this transaction has ended jobs of them. p_batches: the numbers of the
-- batches, which may be repeated; null for jobs without a batch. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.count_ends(p_batches bigint[])
RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_sort TO off SET enable_bitmapscan TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_batch bigint;
  v_sealed boolean;
BEGIN
  FOR v_batch IN SELECT DISTINCT number FROM unnest(p_batches) AS number WHERE number IS NOT NULL ORDER BY number LOOP
    -- The newest job is claimed last. In this order Postgres also reads no dead rows of jobs that have ended before it finds one.
    PERFORM FROM :SCHEMA.jobs WHERE batch = v_batch AND session IS NULL ORDER BY id DESC LIMIT 1 FOR KEY SHARE SKIP LOCKED;
    CONTINUE WHEN FOUND;
    SELECT sealed INTO v_sealed FROM :SCHEMA.batches WHERE number = v_batch;
    IF NOT v_sealed THEN
      -- A seal may be under way.
      SELECT sealed INTO v_sealed FROM :SCHEMA.batches WHERE number = v_batch FOR KEY SHARE;
    END IF;
    IF v_sealed THEN PERFORM :SCHEMA.close_batch(v_batch); END IF;
  END LOOP;
END $function$;

-- Returns the posts that their batches refuse: the index of each from 1, and the reason as the function post returns it. Locks the rows of
-- the batches.
--
-- Arrays with one element for each post: p_batches and p_numbers (uuid and number of its batch; the number is null for a batch that the board
-- does not have), p_members (the number of the open job on whose behalf it is, or null) and p_uuids. p_missing: the numbers of jobs that
-- are not on the board, or null.
CREATE OR REPLACE FUNCTION :SCHEMA.barred_posts(p_batches text[], p_numbers bigint[], p_members bigint[], p_missing bigint[], p_uuids text[])
RETURNS TABLE (at bigint, why json) LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  PERFORM FROM :SCHEMA.batches WHERE number = ANY(p_numbers) ORDER BY number FOR KEY SHARE;
  RETURN QUERY SELECT * FROM (
    SELECT a.place, CASE
      WHEN b.number IS NULL THEN json_build_array('unknown')
      WHEN b.cancelled_by IS NOT NULL THEN json_build_array('cancelled', b.cancel_reason)
      WHEN b.sealed AND (a.member IS NULL OR a.member = ANY(coalesce(p_missing, '{}'))) THEN json_build_array('sealed')
      WHEN EXISTS (SELECT FROM :SCHEMA.jobs j WHERE j.batch = ANY(ARRAY[b.number]) AND j.uuid = ANY(ARRAY[a.uuid])) THEN json_build_array('duplicate')
      END AS reason
    FROM unnest(p_batches, p_numbers, p_members, p_uuids) WITH ORDINALITY AS a(batch, number, member, uuid, place)
    LEFT JOIN :SCHEMA.batches b ON b.number = ANY(ARRAY[a.number])
    WHERE a.batch IS NOT NULL) AS judged
  WHERE reason IS NOT NULL;
END $function$;

-- Opens a batch again. If it has ended, it begins its next generation. Its row must be locked. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.reopen_batch(p_batch bigint, p_sealed boolean)
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  UPDATE :SCHEMA.batches SET sealed = p_sealed, cancelled_by = NULL, cancel_reason = NULL, ended_at = NULL,
    generation = generation + CASE WHEN ended_at IS NULL THEN 0 ELSE 1 END
  WHERE number = p_batch;
END $function$;

-- Returns the batches with these numbers, newest first, with the numbers of their jobs. Times are in milliseconds since 1970.
CREATE OR REPLACE FUNCTION :SCHEMA.counted_batches(p_numbers bigint[])
RETURNS TABLE (uuid text, definition bytea, generation integer, sealed boolean, cancelled_by text, cancel_reason text, ended_at float8,
  total bigint, open bigint, failed bigint) LANGUAGE plpgsql STABLE
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  RETURN QUERY SELECT b.uuid, b.definition, b.generation, b.sealed, b.cancelled_by, b.cancel_reason, extract(epoch FROM b.ended_at)::float8 * 1000,
    -- A row that was made by hand may have any number: an error would hide all batches.
    greatest(0, least(9223372036854775807,
      b.total::numeric + coalesce((SELECT sum(p.jobs) FROM :SCHEMA.batch_posts p WHERE p.batch = b.number), 0)))::bigint,
    (SELECT count(*) FROM :SCHEMA.jobs j WHERE j.batch = b.number),
    (SELECT count(*) FROM :SCHEMA.batch_failures f WHERE f.batch = b.number)
  FROM :SCHEMA.batches b WHERE b.number = ANY(p_numbers) ORDER BY b.number DESC;
END $function$;

-- Creates an empty batch. Arrays with one element for each callback, as the columns of batch_callbacks: p_failed, p_names, p_priorities,
-- p_owner_lost, p_delays, p_bodies and p_gaps. Returns done, or taken if the board has a batch with this uuid.
CREATE OR REPLACE FUNCTION :SCHEMA.create_batch(
  p_lane uuid, p_number bigint, p_board integer, p_uuid text, p_definition bytea, p_failed boolean[], p_names text[], p_priorities text[],
  p_owner_lost text[], p_delays float8[], p_bodies bytea[], p_gaps text[])
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_batch bigint;
BEGIN
  INSERT INTO :SCHEMA.batches (board, uuid, definition) VALUES (p_board, p_uuid, p_definition)
  ON CONFLICT (uuid, board) DO NOTHING RETURNING number INTO v_batch;
  IF v_batch IS NULL THEN RETURN :SCHEMA.answer(p_lane, p_number, '"taken"'); END IF;
  INSERT INTO :SCHEMA.batch_callbacks (batch, failed, name, priority, on_owner_lost, delay, body, gaps)
  SELECT v_batch, * FROM unnest(p_failed, p_names, p_priorities, p_owner_lost, p_delays, p_bodies, p_gaps);
  RETURN :SCHEMA.answer(p_lane, p_number, '"done"');
END $function$;

-- Seals, cancels or reopens a batch, which may end it, or gives it the status and the total of a batch of another board. p_kind: seal, cancel,
-- reopen or carry. p_who, p_reason: of a cancellation; null else. p_total, p_generation, p_sealed and p_ended, in milliseconds since 1970 or
-- null: of a batch that is carried.
-- Returns {generation, sealed, endedAt, who, reason, total, open, failed}: what it is afterwards; or gone if the board has no such batch.
CREATE OR REPLACE FUNCTION :SCHEMA.change_batch(
  p_lane uuid, p_number bigint, p_board integer, p_uuid text, p_kind text, p_who text, p_reason text,
  p_total bigint, p_generation integer, p_sealed boolean, p_ended float8)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_batch bigint;
BEGIN
  SELECT number INTO v_batch FROM :SCHEMA.batches WHERE uuid = p_uuid AND board = p_board FOR UPDATE;
  IF NOT FOUND THEN RETURN :SCHEMA.answer(p_lane, p_number, '"gone"'); END IF;
  IF p_kind = 'reopen' THEN
    PERFORM :SCHEMA.reopen_batch(v_batch, false);
  ELSIF p_kind = 'seal' THEN
    UPDATE :SCHEMA.batches SET sealed = true WHERE number = v_batch AND NOT sealed;
    PERFORM :SCHEMA.add_posts(v_batch);
  ELSIF p_kind = 'carry' THEN
    PERFORM :SCHEMA.add_posts(v_batch);
    UPDATE :SCHEMA.batches SET total = p_total, generation = p_generation, sealed = p_sealed, cancelled_by = p_who, cancel_reason = p_reason,
      ended_at = to_timestamp(p_ended / 1000) WHERE number = v_batch;
  ELSE
    UPDATE :SCHEMA.batches SET sealed = true, cancelled_by = p_who, cancel_reason = p_reason WHERE number = v_batch AND ended_at IS NULL;
  END IF;
  PERFORM :SCHEMA.close_batch(v_batch);
  PERFORM :SCHEMA.notify_batch(p_board, p_uuid);
  RETURN :SCHEMA.answer(p_lane, p_number, (
    SELECT json_build_object('generation', generation, 'sealed', sealed, 'endedAt', ended_at, 'who', cancelled_by, 'reason', cancel_reason,
      'total', total, 'open', open, 'failed', failed) FROM :SCHEMA.counted_batches(ARRAY[v_batch])));
END $function$;

-- Ends batches that are sealed and have no open jobs, as when their last job was removed by hand; adds posts to totals, and removes batches
-- that are not kept. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.sweep_batches(p_board integer)
RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_batch bigint;
BEGIN
  FOR v_batch IN SELECT number FROM :SCHEMA.batches b WHERE board = p_board AND (EXISTS (SELECT FROM :SCHEMA.batch_posts p WHERE p.batch = b.number)
    OR (sealed AND ended_at IS NULL AND NOT EXISTS (SELECT FROM :SCHEMA.jobs j WHERE j.batch = b.number))) ORDER BY number
  LOOP
    PERFORM FROM :SCHEMA.batches WHERE number = v_batch FOR NO KEY UPDATE SKIP LOCKED;
    IF FOUND THEN
      BEGIN
        PERFORM :SCHEMA.add_posts(v_batch);
        PERFORM :SCHEMA.close_batch(v_batch);
      EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
        -- The batch was changed by hand. The others must be swept all the same.
        RAISE WARNING 'batch % cannot be swept: %', v_batch, SQLERRM;
      END;
    END IF;
  END LOOP;
  PERFORM :SCHEMA.forget_batches(p_board);
END $function$;
