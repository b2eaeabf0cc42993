-- Functions that read the jobs of one queue, and that move jobs between queues. A named queue is read by its index alone. The default queue, whose
-- column queue is null, has no index of its own, so that plain jobs do not pay for one: its jobs are searched among those of all queues.

-- Returns up to p_limit jobs of a queue after this position in the claim order, as the function stretch does. p_queue: null for the default
-- queue.
CREATE OR REPLACE FUNCTION :SCHEMA.queue_stretch(
  p_board integer, p_queue text, p_rank smallint, p_id bigint, p_limit integer, p_due boolean)
RETURNS json LANGUAGE plpgsql STABLE
SET enable_seqscan TO off SET enable_sort TO off SET enable_bitmapscan TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_spots json;
BEGIN
  IF p_queue IS NULL THEN
    SELECT json_agg(json_build_array(id, rank, :SCHEMA.milliseconds(due_at), session IS NOT NULL, cancelled_by IS NOT NULL, queue)
      ORDER BY rank, id) INTO v_spots FROM (
      SELECT * FROM :SCHEMA.jobs
      WHERE board = p_board AND queue IS NULL AND (rank, id + 0) > (p_rank, p_id) AND (NOT p_due OR (due_at <= v_now AND session IS NULL))
      ORDER BY rank, id + 0 LIMIT p_limit) AS first;
  ELSE
    SELECT json_agg(json_build_array(id, rank, :SCHEMA.milliseconds(due_at), session IS NOT NULL, cancelled_by IS NOT NULL, queue)
      ORDER BY rank, id) INTO v_spots FROM (
      SELECT * FROM :SCHEMA.jobs
      WHERE board = p_board AND queue = p_queue AND (rank, id) > (p_rank, p_id) AND (NOT p_due OR (due_at <= v_now AND session IS NULL))
      ORDER BY queue, rank, id LIMIT p_limit) AS first;
  END IF;
  RETURN json_build_object('at', :SCHEMA.milliseconds(v_now), 'spots', coalesce(v_spots, '[]'));
END $function$;

-- Returns up to p_limit delayed jobs of a queue, as the function resting does. p_queue: null for the default queue.
CREATE OR REPLACE FUNCTION :SCHEMA.queue_resting(p_board integer, p_queue text, p_after float8, p_limit integer)
RETURNS json LANGUAGE plpgsql STABLE
SET enable_seqscan TO off SET enable_sort TO off SET enable_bitmapscan TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_spots json;
BEGIN
  IF p_queue IS NULL THEN
    SELECT json_agg(json_build_array(id, rank, :SCHEMA.milliseconds(due_at), session IS NOT NULL, cancelled_by IS NOT NULL, queue)
      ORDER BY due_at) INTO v_spots FROM (
      SELECT * FROM :SCHEMA.jobs WHERE board = p_board AND queue IS NULL AND session IS NULL
        AND due_at > to_timestamp(p_after / 1000) AND due_at > '-infinity' AND due_at < 'infinity'
      ORDER BY due_at LIMIT p_limit) AS first;
  ELSE
    SELECT json_agg(json_build_array(id, rank, :SCHEMA.milliseconds(due_at), session IS NOT NULL, cancelled_by IS NOT NULL, queue)
      ORDER BY due_at) INTO v_spots FROM (
      SELECT * FROM :SCHEMA.jobs WHERE board = p_board AND queue = p_queue AND session IS NULL
        AND due_at > to_timestamp(p_after / 1000) AND due_at > '-infinity' AND due_at < 'infinity'
      ORDER BY queue, due_at LIMIT p_limit) AS first;
  END IF;
  RETURN coalesce(v_spots, '[]');
END $function$;

-- Returns the queues that have jobs with the number of their jobs, as [queue, number]; the queue is null for the default one.
CREATE OR REPLACE FUNCTION :SCHEMA.queue_counts(p_board integer)
RETURNS json LANGUAGE sql STABLE
SET search_path TO pg_catalog, pg_temp
AS $function$
  SELECT coalesce(json_agg(json_build_array(queue, jobs)), '[]')
  FROM (SELECT queue, count(*) AS jobs FROM :SCHEMA.jobs WHERE board = p_board GROUP BY queue) AS counted
$function$;

-- Settles claims as the function settle does, and moves jobs to other queues. p_queues: for each job the queue to which it is moved, empty for the
-- default one; null for a job that stays.
CREATE OR REPLACE FUNCTION :SCHEMA.settle_and_move(
  p_lane uuid, p_number bigint, p_board integer, p_session integer, p_ids bigint[], p_revisions integer[],
  p_kinds text[], p_lives bytea, p_lengths integer[], p_delays float8[], p_whos text[], p_reasons text[], p_failures bytea[],
  p_holding boolean, p_uuids text[], p_records bytea, p_record_lengths integer[], p_keep integer, p_queues text[])
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_answer json;
  v_own bigint[];
  v_moved bigint[];
  v_ranks smallint[];
  v_dues float8[];
BEGIN
  -- Which jobs this session gives back is decided before it does so: afterwards a job that somebody has released looks the same. The order of locks
  -- is that of settle.
  PERFORM FROM :SCHEMA.jobs WHERE id = ANY(p_ids) AND coalesce(session, 0) = p_session ORDER BY id FOR UPDATE;
  v_own := ARRAY(
    SELECT j.id FROM :SCHEMA.jobs j JOIN unnest(p_ids, p_revisions) AS a(id, revision) ON j.id = ANY(ARRAY[a.id])
    WHERE coalesce(j.session, 0) = p_session AND j.revision = a.revision);
  v_answer := :SCHEMA.settle(p_lane, p_number, p_board, p_session, p_ids, p_revisions, p_kinds, p_lives, p_lengths, p_delays, p_whos,
    p_reasons, p_failures, p_holding, p_uuids, p_records, p_record_lengths, p_keep);
  WITH moved AS (
    UPDATE :SCHEMA.jobs j SET queue = nullif(a.queue, '')
    FROM unnest(p_ids, p_revisions, p_queues) AS a(id, revision, queue)
    WHERE j.id = ANY(ARRAY[a.id]) AND j.id = ANY(v_own) AND j.session IS NULL AND j.revision = a.revision + 1 AND a.queue IS NOT NULL
    RETURNING j.id, j.rank, :SCHEMA.milliseconds(j.due_at) AS due
  )
  SELECT array_agg(id ORDER BY id), array_agg(rank ORDER BY id), array_agg(due ORDER BY id) INTO v_moved, v_ranks, v_dues FROM moved;
  IF v_moved IS NOT NULL THEN PERFORM :SCHEMA.log_placed(p_board, 'replaced', v_moved, v_ranks, v_dues); END IF;
  RETURN v_answer;
END $function$;
