-- Functions that record the changes of a board, return them, and delete obsolete ones.
--
-- The table changes has one row for each transaction and kind of change. A participant with an older snapshot finds the rows
-- of later commits by their transaction numbers.

-- Locks the rows of followers of these jobs, in their order. A function that calls log_change for several kinds of changes that
-- end jobs locks them for all these jobs before. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.lock_followers(p_board integer, p_jobs bigint[])
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  PERFORM FROM :SCHEMA.followers WHERE job = ANY(p_jobs) AND board = p_board ORDER BY job, session FOR UPDATE;
END $function$;

-- Records a change. Notifies the sessions that listen to the board, which read it with changes_since, if one of them asks for it: see
-- notifying.sql. A snapshot of REPEATABLE READ or SERIALIZABLE may be older than the flag of a session, so such a transaction notifies
-- always. Notifies the followers of the jobs, with the kind and the number of the job; a job that is just posted has none. Deletes the
-- followers of jobs that have ended.
--
-- p_kind: posted, ready, replaced, claimed, abandoned, freed, consumed, trashed, cancelled, paused or resumed. p_jobs: the numbers of the
-- jobs. p_ranks, p_dues: of posted, ready and replaced jobs, where any of them differs from the default. p_ranks of claimed jobs: 1 for each job that holds resources or slots, else 0; or null if none does.
--
-- The name of the channel of the board ends with p_board. The name of the channel on which a session receives the changes of the jobs
-- that it follows ends with p_board, `_` and the number of the session.
CREATE OR REPLACE FUNCTION :SCHEMA.log_change(p_board integer, p_kind text, p_jobs bigint[], p_ranks smallint[] DEFAULT NULL,
  p_dues float8[] DEFAULT NULL)
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  INSERT INTO :SCHEMA.changes (board, kind, jobs, ranks, dues) VALUES (p_board, p_kind, p_jobs, p_ranks, p_dues);
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
    OR EXISTS (SELECT FROM :SCHEMA.sessions WHERE board = p_board AND notified) THEN
    PERFORM pg_notify(':CHANNEL' || p_board, '');
  END IF;
  IF p_kind <> 'posted' THEN
    PERFORM pg_notify(':CHANNEL' || p_board || '_' || session, p_kind || ' ' || job)
    FROM :SCHEMA.followers WHERE job = ANY(p_jobs) AND board = p_board;
    IF FOUND AND p_kind IN ('consumed', 'trashed') THEN
      PERFORM :SCHEMA.lock_followers(p_board, p_jobs);
      DELETE FROM :SCHEMA.followers WHERE job = ANY(p_jobs) AND board = p_board;
    END IF;
  END IF;
END $function$;

-- Records a change of posted, ready or replaced jobs as log_change does, with the queues of jobs that are not in the default one. p_jobs is in the
-- order of numbers.
CREATE OR REPLACE FUNCTION :SCHEMA.log_placed(p_board integer, p_kind text, p_jobs bigint[], p_ranks smallint[], p_dues float8[])
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_queues text[];
BEGIN
  SELECT array_agg(queue ORDER BY id) INTO v_queues FROM :SCHEMA.jobs WHERE id = ANY(p_jobs);
  IF num_nonnulls(VARIADIC v_queues) = 0 THEN
    PERFORM :SCHEMA.log_change(p_board, p_kind, p_jobs, p_ranks, p_dues);
    RETURN;
  END IF;
  INSERT INTO :SCHEMA.changes (board, kind, jobs, ranks, dues, queues) VALUES (p_board, p_kind, p_jobs, p_ranks, p_dues, v_queues);
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
    OR EXISTS (SELECT FROM :SCHEMA.sessions WHERE board = p_board AND notified) THEN
    PERFORM pg_notify(':CHANNEL' || p_board, '');
  END IF;
  IF p_kind <> 'posted' THEN
    PERFORM pg_notify(':CHANNEL' || p_board || '_' || session, p_kind || ' ' || job)
    FROM :SCHEMA.followers WHERE job = ANY(p_jobs) AND board = p_board;
  END IF;
END $function$;

-- Returns the priority in the place of a job as clients give it: the priority alone, or with its queue after a space.
CREATE OR REPLACE FUNCTION :SCHEMA.priority_in(p_place text)
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path TO pg_catalog, pg_temp
AS $function$ SELECT split_part(p_place, ' ', 1) $function$;

-- Returns the queue in the place of a job; null for the default one.
CREATE OR REPLACE FUNCTION :SCHEMA.queue_in(p_place text)
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path TO pg_catalog, pg_temp
AS $function$ SELECT nullif(substr(p_place, strpos(p_place || ' ', ' ') + 1), '') $function$;

-- Returns one row: a new snapshot, the clock in milliseconds since 1970, and the changes that p_snapshot does not contain,
-- oldest first, each as [kind, jobs, ranks, dues, transaction, queues]; null if there are none.
--
-- Transactions below pg_snapshot_xmax were assigned before p_snapshot; of these only the ones that were in progress are
-- read. In PL/pgSQL, because a function in SQL is planned anew in each call.
CREATE OR REPLACE FUNCTION :SCHEMA.changes_since(p_board integer, p_snapshot pg_snapshot)
RETURNS TABLE (snapshot text, at float8, told json) LANGUAGE plpgsql STABLE
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET plan_cache_mode TO force_generic_plan
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  RETURN QUERY SELECT pg_current_snapshot()::text, extract(epoch FROM clock_timestamp())::float8 * 1000, (
    SELECT json_agg(json_build_array(c.kind, c.jobs, c.ranks, c.dues, c.transaction, c.queues) ORDER BY c.number) FROM (
      SELECT * FROM :SCHEMA.changes WHERE board = p_board AND transaction >= pg_snapshot_xmax(p_snapshot)
      UNION ALL
      SELECT * FROM :SCHEMA.changes WHERE board = p_board AND transaction = ANY(ARRAY(SELECT pg_snapshot_xip(p_snapshot)))
    ) c);
END $function$;

-- Removes obsolete rows: changes that every living participant has read, old receipts, arrival times of limits that are not needed any
-- more, windows that are over. Sweeps batches, too. Does nothing if another participant does so now, or has done so within the last 2
-- minutes. Returns nothing.
--
-- A participant polls at least once within 60 seconds, or else lists the board again. So the changes that were visible in a
-- snapshot that is 2 minutes old (the horizon) are not needed any more.
CREATE OR REPLACE FUNCTION :SCHEMA.prune(p_board integer)
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_horizon pg_snapshot;
  v_pruned xid8;
BEGIN
  SELECT horizon, pruned INTO v_horizon, v_pruned FROM :SCHEMA.boards
  WHERE id = p_board AND horizon_at < clock_timestamp() - interval '2 minutes' FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  -- Batches come before receipts: a transaction that has locked the row of a batch may wait for the row of a receipt.
  PERFORM :SCHEMA.sweep_batches(p_board);
  -- Earlier transactions have no rows any more. Without this bound, the deletion would read the rows of all changes that were ever deleted, as long as
  -- any transaction is open that began before. A bound from another server, before a restoration, may be too large.
  DELETE FROM :SCHEMA.changes WHERE board = p_board AND transaction < pg_snapshot_xmax(v_horizon)
    AND transaction >= CASE WHEN v_pruned <= pg_snapshot_xmin(v_horizon) THEN v_pruned ELSE '0' END
    AND pg_visible_in_snapshot(transaction, v_horizon);
  -- An arrival time that has passed means the same as none, and the arrival time of a key without a limit is not used. No limit can be set meanwhile,
  -- because the row of the board is locked.
  DELETE FROM :SCHEMA.limit_keys WHERE (key, board) IN (SELECT k.key, k.board FROM :SCHEMA.limit_keys k
    WHERE k.board = p_board AND (k.arrival < extract(epoch FROM clock_timestamp())::float8 * 1000 OR NOT EXISTS (
      SELECT FROM :SCHEMA.records r WHERE r.board = p_board AND r.kind = 'limit'
        AND (r.id = k.key OR (right(r.id, 1) = '*' AND starts_with(k.key, left(r.id, -1))))))
    FOR UPDATE OF k SKIP LOCKED);
  -- Slots of claimed jobs that were deleted by hand. The number of a job is never used again.
  DELETE FROM :SCHEMA.slots s WHERE s.board = p_board AND NOT EXISTS (SELECT FROM :SCHEMA.jobs j WHERE j.id = s.job);
  DELETE FROM :SCHEMA.key_windows WHERE (key, board) IN (SELECT key, board FROM :SCHEMA.key_windows
    WHERE board = p_board AND until < clock_timestamp() FOR UPDATE SKIP LOCKED);
  DELETE FROM :SCHEMA.receipts WHERE at < clock_timestamp() - interval '1 day';
  IF EXISTS (SELECT FROM :SCHEMA.ended_backends WHERE board = p_board) THEN
    DELETE FROM :SCHEMA.ended_backends e WHERE board = p_board
      AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = e.pid AND a.backend_start = e.start);
  END IF;
  UPDATE :SCHEMA.boards SET horizon = pg_current_snapshot(), horizon_at = clock_timestamp(), pruned = pg_snapshot_xmin(v_horizon) WHERE id = p_board;
END $function$;
