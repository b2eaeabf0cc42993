-- Functions that read parts of a board: the head of the claim order, the next delayed jobs, and the claimed jobs. None of
-- them may read a long board for a short answer, whatever the statistics of the table are. So their settings make them read
-- an index in its order and sort nothing.
--
-- The index of the claim order, jobs_in_turn, has id + 0 in place of id. An index that has id itself was also used to find jobs by their numbers, where
-- Postgres believed that there were no jobs: it read the whole index for each number, and a claim of 500 jobs took a quarter of a second.
--
-- The functions return a job as [number, rank, end of its delay in milliseconds since 1970 or 0, whether claimed, whether cancelled, queue or null for the
-- default one]. The delay of a
-- job that waits for others ends at infinity.

-- Returns a time in milliseconds since 1970; 0 for a job without delay. Postgres inlines this function, so it must have no
-- settings (also no search_path), and qualifies all names itself.
CREATE OR REPLACE FUNCTION :SCHEMA.milliseconds(p_at timestamptz)
RETURNS float8 LANGUAGE sql IMMUTABLE
AS $function$
  SELECT CASE WHEN p_at OPERATOR(pg_catalog.=) '-infinity'::timestamptz THEN 0::float8
    ELSE extract(epoch FROM p_at)::float8 OPERATOR(pg_catalog.*) 1000::float8 END
$function$;

-- Returns {at, spots}: the clock, and up to p_limit jobs after this position in the claim order. p_due: whether to return
-- only jobs that are unclaimed and due.
CREATE OR REPLACE FUNCTION :SCHEMA.stretch(p_board integer, p_rank smallint, p_id bigint, p_limit integer, p_due boolean)
RETURNS json LANGUAGE plpgsql STABLE
SET enable_seqscan TO off SET enable_sort TO off SET enable_bitmapscan TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_spots json;
BEGIN
  IF p_due THEN
    SELECT json_agg(json_build_array(id, rank, :SCHEMA.milliseconds(due_at), session IS NOT NULL, cancelled_by IS NOT NULL, queue)
      ORDER BY rank, id) INTO v_spots FROM (
      SELECT * FROM :SCHEMA.jobs
      WHERE board = p_board AND (rank, id + 0) > (p_rank, p_id) AND due_at <= v_now AND session IS NULL
      ORDER BY rank, id + 0 LIMIT p_limit) AS first;
  ELSE
    SELECT json_agg(json_build_array(id, rank, :SCHEMA.milliseconds(due_at), session IS NOT NULL, cancelled_by IS NOT NULL, queue)
      ORDER BY rank, id) INTO v_spots FROM (
      SELECT * FROM :SCHEMA.jobs WHERE board = p_board AND (rank, id + 0) > (p_rank, p_id)
      ORDER BY rank, id + 0 LIMIT p_limit) AS first;
  END IF;
  RETURN json_build_object('at', :SCHEMA.milliseconds(v_now), 'spots', coalesce(v_spots, '[]'));
END $function$;

-- Returns up to p_limit unclaimed jobs whose delay ends after p_after (in milliseconds since 1970), by the end of their
-- delay; without the jobs that wait for others.
CREATE OR REPLACE FUNCTION :SCHEMA.resting(p_board integer, p_after float8, p_limit integer)
RETURNS json LANGUAGE sql STABLE
SET enable_seqscan TO off SET enable_sort TO off SET enable_bitmapscan TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
  SELECT coalesce(json_agg(
    json_build_array(id, rank, :SCHEMA.milliseconds(due_at), session IS NOT NULL, cancelled_by IS NOT NULL, queue)
    ORDER BY due_at), '[]') FROM (
    SELECT * FROM :SCHEMA.jobs
    WHERE board = p_board AND due_at > to_timestamp(p_after / 1000) AND due_at > '-infinity' AND due_at < 'infinity' AND session IS NULL
    ORDER BY due_at LIMIT p_limit) AS first
$function$;

-- Returns all claimed jobs, each with whether its claim holds resources or slots.
CREATE OR REPLACE FUNCTION :SCHEMA.claimed(p_board integer)
RETURNS json LANGUAGE sql STABLE
SET enable_seqscan TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
  SELECT coalesce(json_agg(
    json_build_array(id, rank, :SCHEMA.milliseconds(due_at), session IS NOT NULL, cancelled_by IS NOT NULL, queue,
      EXISTS (SELECT FROM :SCHEMA.permits p WHERE p.job = jobs.id AND p.board = p_board)
        OR EXISTS (SELECT FROM :SCHEMA.slots s WHERE s.job = jobs.id AND s.board = p_board))), '[]')
  FROM :SCHEMA.jobs WHERE board = p_board AND session IS NOT NULL
$function$;
