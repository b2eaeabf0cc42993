-- Functions of dependencies: the jobs that must end before a job is claimed. Functions that end jobs call them, in the same transaction.
--
-- | transaction | locks | what follows |
-- |---|---|---|
-- | post, restoration | the jobs after which the job is run, FOR KEY SHARE | none of them ends before it commits, and then its end finds the dependency |
-- | end of a job | its row, FOR UPDATE; then the rows of the jobs that depend on it, by id | of two ends at the same time, the second one finds what the first one has left |
-- | cancellation | the row of the job | its dependencies are deleted: it is claimed without them |
--
-- A doomed job (cancelled before its first run, because a job on which it depends is in the trash) keeps an infinite due_when_ready, so it
-- is not claimed. The client that cancelled it, or another one, moves it to the trash.
--
-- So a claimed job has no dependencies, and a job has a larger id than the jobs on which it depends. Two ends, which lock the jobs that end
-- first and then the dependent jobs by id, never wait for each other.

-- Locks these jobs of a board against their end until the transaction has ended. Returns the numbers of the jobs that are not on the board;
-- null if all are.
CREATE OR REPLACE FUNCTION :SCHEMA.lock_dependencies(p_board integer, p_after bigint[])
RETURNS bigint[] LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_there bigint[];
BEGIN
  SELECT array_agg(id) INTO v_there FROM (
    SELECT id FROM :SCHEMA.jobs WHERE id = ANY(p_after) AND board + 0 = p_board ORDER BY id FOR KEY SHARE) AS locked;
  RETURN (SELECT array_agg(id) FROM (SELECT unnest(p_after) AS id EXCEPT SELECT unnest(v_there)) AS missing);
END $function$;

-- Locks the rows of the jobs that depend on these, which are locked. Returns their numbers; null if there are none. It comes before the
-- locks of followers.
CREATE OR REPLACE FUNCTION :SCHEMA.lock_dependents(p_jobs bigint[])
RETURNS bigint[] LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_dependents bigint[];
BEGIN
  SELECT array_agg(DISTINCT job) INTO v_dependents FROM :SCHEMA.dependencies WHERE waits_for = ANY(p_jobs);
  IF v_dependents IS NOT NULL THEN
    PERFORM FROM :SCHEMA.jobs WHERE id = ANY(v_dependents) ORDER BY id FOR NO KEY UPDATE;
  END IF;
  RETURN v_dependents;
END $function$;

-- Returns whether a job was never claimed. p_life: the part of its posting that claims change. It is null before the first claim. A
-- restored job has this part, and its first field, runs, is 0.
CREATE OR REPLACE FUNCTION :SCHEMA.never_ran(p_life bytea)
RETURNS boolean LANGUAGE sql IMMUTABLE
SET search_path TO pg_catalog, pg_temp
AS $function$
  SELECT p_life IS NULL OR position('\xa472756e7300'::bytea IN substring(p_life FROM 1 FOR 10)) > 0;
$function$;

-- Returns the doomed jobs among these jobs; null if there are none.
CREATE OR REPLACE FUNCTION :SCHEMA.doomed_jobs(p_jobs bigint[])
RETURNS bigint[] LANGUAGE sql
SET search_path TO pg_catalog, pg_temp
AS $function$
  SELECT array_agg(id) FROM :SCHEMA.jobs WHERE id = ANY(p_jobs) AND cancelled_by IS NOT NULL AND due_when_ready = 'infinity';
$function$;

-- Frees the jobs that depended on jobs which have ended, or cancels them. Their rows are locked. p_done and p_trashed: the numbers of the
-- jobs that are done, and of the jobs that are in the trash; either may be null. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.release_dependents(p_board integer, p_done bigint[], p_trashed bigint[])
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_met bigint[];
  v_failed bigint[];
  v_causes bigint[];
  v_cancelled bigint[];
  v_ready bigint[];
  v_ranks smallint[];
  v_dues float8[];
BEGIN
  WITH ended AS (
    DELETE FROM :SCHEMA.dependencies WHERE waits_for = ANY(p_done || p_trashed) RETURNING job, waits_for, settled
  ), judged AS (
    SELECT job, min(waits_for) FILTER (WHERE NOT settled AND waits_for = ANY(p_trashed)) AS cause FROM ended GROUP BY job
  )
  SELECT array_agg(job) FILTER (WHERE cause IS NULL), array_agg(job) FILTER (WHERE cause IS NOT NULL),
    array_agg(cause) FILTER (WHERE cause IS NOT NULL)
  INTO v_met, v_failed, v_causes FROM judged;
  IF v_failed IS NOT NULL THEN
    WITH cancelled AS (
      UPDATE :SCHEMA.jobs j SET due_at = '-infinity', cancelled_by = t.who,
        due_when_ready = CASE WHEN :SCHEMA.never_ran(j.life) THEN 'infinity'::timestamptz END,
        cancel_reason = 'job ' || t.uuid || ' (' || t.name || '), on which it depends, is in the trash: ' || left(t.reason, 100)
          || CASE WHEN length(t.reason) > 100 THEN '...' ELSE '' END
      FROM unnest(v_failed, v_causes) AS f(job, cause) JOIN :SCHEMA.trash t ON t.board = p_board AND t.id = ANY(ARRAY[f.cause])
      WHERE j.id = ANY(ARRAY[f.job]) AND j.cancelled_by IS NULL
      RETURNING j.id
    )
    SELECT array_agg(id) INTO v_cancelled FROM cancelled;
    DELETE FROM :SCHEMA.dependencies WHERE job = ANY(v_failed);
  END IF;
  IF v_met IS NOT NULL THEN
    WITH ready AS (
      UPDATE :SCHEMA.jobs j SET due_at = due_when_ready, due_when_ready = NULL
      WHERE id = ANY(v_met) AND due_when_ready IS NOT NULL
        AND NOT EXISTS (SELECT FROM :SCHEMA.dependencies d WHERE d.job = j.id)
      RETURNING id, rank, due_at
    )
    SELECT array_agg(id ORDER BY id), CASE WHEN bool_or(rank <> 2) THEN array_agg(rank ORDER BY id) END,
      CASE WHEN bool_or(due_at > '-infinity') THEN array_agg(:SCHEMA.milliseconds(due_at) ORDER BY id) END
    INTO v_ready, v_ranks, v_dues FROM ready;
  END IF;
  IF v_cancelled IS NOT NULL THEN PERFORM :SCHEMA.log_change(p_board, 'cancelled', v_cancelled); END IF;
  IF v_ready IS NOT NULL THEN PERFORM :SCHEMA.log_placed(p_board, 'ready', v_ready, v_ranks, v_dues); END IF;
END $function$;
