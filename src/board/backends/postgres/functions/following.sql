-- Functions by which a session receives hints that single jobs have changed, without listening to all changes of the board.
--
-- log_change notifies the followers of a job on the channel of their session. A transaction that changes the job at the same
-- time may not see the new row of the table followers. So follow waits for such a transaction: it locks the jobs after it has
-- inserted its rows, and reads their status after that. A row whose job has left the board meanwhile is deleted again.
--
-- Rows of followers are locked after the rows of jobs, in the order of job and session.

-- Follows these jobs for a session. Returns for each its status: [claimed, cancelled, revision], "trashed", or null for a job
-- that is neither on the board nor in the trash; null instead of the list if the session has ended.
CREATE OR REPLACE FUNCTION :SCHEMA.follow(p_board integer, p_session integer, p_jobs bigint[])
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_added bigint[];
BEGIN
  IF NOT :SCHEMA.is_alive(p_session) THEN RETURN NULL; END IF;
  WITH added AS (
    INSERT INTO :SCHEMA.followers (board, job, session)
    SELECT p_board, id, p_session FROM :SCHEMA.jobs WHERE id = ANY(p_jobs) AND board + 0 = p_board ORDER BY id
    ON CONFLICT DO NOTHING RETURNING job
  )
  SELECT array_agg(job) INTO v_added FROM added;
  IF v_added IS NOT NULL THEN
    PERFORM FROM :SCHEMA.jobs WHERE id = ANY(v_added) ORDER BY id FOR SHARE;
    DELETE FROM :SCHEMA.followers f WHERE f.job = ANY(v_added) AND f.board = p_board AND f.session = p_session
      AND NOT EXISTS (SELECT FROM :SCHEMA.jobs j WHERE j.id = f.job);
  END IF;
  RETURN (
    SELECT coalesce(json_agg(CASE
      WHEN j.id IS NOT NULL THEN json_build_array(j.session IS NOT NULL, j.cancelled_by IS NOT NULL, j.revision)
      WHEN t.id IS NOT NULL THEN '"trashed"'::json END ORDER BY a.at), '[]')
    FROM unnest(p_jobs) WITH ORDINALITY AS a(id, at)
    LEFT JOIN :SCHEMA.jobs j ON j.id = a.id AND j.board = p_board
    LEFT JOIN :SCHEMA.trash t ON t.id = a.id AND t.board = p_board);
END $function$;

-- Ends what follow began. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.unfollow(p_board integer, p_session integer, p_jobs bigint[])
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  PERFORM FROM :SCHEMA.followers WHERE job = ANY(p_jobs) AND board = p_board AND session = p_session ORDER BY job FOR UPDATE;
  DELETE FROM :SCHEMA.followers WHERE job = ANY(p_jobs) AND board = p_board AND session = p_session;
END $function$;
