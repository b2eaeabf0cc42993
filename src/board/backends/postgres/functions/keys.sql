-- Functions of the windows of keys, and of the replacement of a posting by a newer post with the same key.
--
-- A key is taken by the row of its job in jobs (an index keeps it unique), and after the end of that job by its row in key_windows, until
-- its time has passed. A post inserts its jobs first. It waits there for other transactions about the same keys; afterwards a statement of
-- its own sees the windows of all jobs that had the keys before.

-- Takes the keys of jobs that this transaction has just inserted. Arrays with one element for each job: number, digest of the key or null,
-- uuid, window in milliseconds or null. p_own: the number of a job whose window does not count, or null. Returns the numbers of the jobs
-- whose key is taken by a window: the caller deletes them. Null if there are none.
CREATE OR REPLACE FUNCTION :SCHEMA.take_keys(
  p_board integer, p_ids bigint[], p_keys bytea[], p_uuids text[], p_windows float8[], p_own bigint DEFAULT NULL)
RETURNS bigint[] LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_refused bigint[];
BEGIN
  SELECT array_agg(a.id) INTO v_refused FROM unnest(p_ids, p_keys) AS a(id, key)
  JOIN :SCHEMA.key_windows w ON w.key = ANY(ARRAY[a.key]) AND w.board = p_board
  WHERE w.until > clock_timestamp() AND w.job <> coalesce(p_own, 0);
  -- A caller's transaction with an older snapshot may not see a window: then this insert fails, and the key is not taken twice.
  INSERT INTO :SCHEMA.key_windows (board, key, job, uuid, until)
  SELECT p_board, key, id, uuid, coalesce(clock_timestamp() + length * interval '1 ms', '-infinity')
  FROM unnest(p_ids, p_keys, p_uuids, p_windows) AS a(id, key, uuid, length)
  WHERE (length IS NOT NULL OR current_setting('transaction_isolation') <> 'read committed')
    AND key IS NOT NULL AND id <> ALL(coalesce(v_refused, '{}')) ORDER BY key
  ON CONFLICT (key, board) DO UPDATE SET job = excluded.job, uuid = excluded.uuid, until = excluded.until;
  RETURN v_refused;
END $function$;

-- Replaces the posting of an unclaimed job by a newer posting with the same key. p_body, p_name, p_priority, p_owner_lost, p_delay: as in
-- post; p_window: the window of the key from now on in milliseconds, or null. Returns done; changed if the job is claimed or cancelled, or
-- has another revision; or gone if it has left the board.
CREATE OR REPLACE FUNCTION :SCHEMA.replace_posting(
  p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_revision integer, p_body bytea, p_name text,
  p_priority text, p_key bytea, p_owner_lost text, p_delay float8, p_window float8)
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_due timestamptz := coalesce(v_now + p_delay * interval '1 ms', '-infinity');
  v_job :SCHEMA.jobs;
BEGIN
  UPDATE :SCHEMA.jobs SET body = p_body, life = NULL, name = p_name, priority = :SCHEMA.priority_in(p_priority), queue = :SCHEMA.queue_in(p_priority), on_owner_lost = p_owner_lost,
    revision = revision + 1, written_at = v_now,
    due_at = CASE WHEN due_when_ready IS NULL THEN v_due ELSE due_at END,
    due_when_ready = CASE WHEN due_when_ready IS NOT NULL THEN v_due END
  WHERE id = p_id AND session IS NULL AND revision = p_revision AND key = p_key AND cancelled_by IS NULL RETURNING * INTO v_job;
  IF NOT FOUND THEN
    PERFORM FROM :SCHEMA.jobs WHERE id = p_id;
    RETURN :SCHEMA.answer(p_lane, p_number, CASE WHEN FOUND THEN '"changed"'::json ELSE '"gone"' END);
  END IF;
  DELETE FROM :SCHEMA.key_windows WHERE key = p_key AND board = p_board;
  PERFORM :SCHEMA.take_keys(p_board, ARRAY[p_id], ARRAY[p_key], ARRAY[v_job.uuid], ARRAY[p_window]);
  PERFORM :SCHEMA.log_placed(p_board, 'replaced', ARRAY[p_id], ARRAY[v_job.rank], ARRAY[:SCHEMA.milliseconds(v_job.due_at)]);
  RETURN :SCHEMA.answer(p_lane, p_number, '"done"');
END $function$;
