/**
 * SQL functions that read parts of a board: the head of the claim order, the next delayed jobs, and the claimed jobs. None of
 * them may read a long board for a short answer, whatever the statistics of the table are. So they read an index in its order
 * and sort nothing.
 */

const ORDERED_SCAN_SETTINGS = 'SET enable_seqscan TO off SET enable_sort TO off SET enable_bitmapscan TO off'

/** The summary of a job without its posting, as `sections.ts` reads it. */
const JOB_SUMMARY = `json_build_array(id, rank, @.milliseconds(due_at), session IS NOT NULL, cancelled_by IS NOT NULL)`

/** Returns the functions, with `@` for the schema. */
export function sectionFunctions(): string {
  return `
CREATE FUNCTION @.stretch(p_board integer, p_rank smallint, p_id bigint, p_limit integer, p_due boolean)
RETURNS json LANGUAGE plpgsql STABLE ${ORDERED_SCAN_SETTINGS} AS $function$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_spots json;
BEGIN
  IF p_due THEN
    SELECT json_agg(${JOB_SUMMARY} ORDER BY rank, id) INTO v_spots FROM (
      SELECT * FROM @.jobs
      WHERE board = p_board AND (rank, id) > (p_rank, p_id) AND due_at <= v_now AND session IS NULL
      ORDER BY rank, id LIMIT p_limit) AS first;
  ELSE
    SELECT json_agg(${JOB_SUMMARY} ORDER BY rank, id) INTO v_spots FROM (
      SELECT * FROM @.jobs WHERE board = p_board AND (rank, id) > (p_rank, p_id) ORDER BY rank, id LIMIT p_limit) AS first;
  END IF;
  RETURN json_build_object('at', @.milliseconds(v_now), 'spots', coalesce(v_spots, '[]'));
END $function$;

CREATE FUNCTION @.resting(p_board integer, p_after float8, p_limit integer)
RETURNS json LANGUAGE sql STABLE ${ORDERED_SCAN_SETTINGS} AS $function$
  SELECT coalesce(json_agg(${JOB_SUMMARY} ORDER BY due_at), '[]') FROM (
    SELECT * FROM @.jobs
    WHERE board = p_board AND due_at > to_timestamp(p_after / 1000) AND due_at > '-infinity' AND session IS NULL
    ORDER BY due_at LIMIT p_limit) AS first
$function$;

CREATE FUNCTION @.claimed(p_board integer) RETURNS json LANGUAGE sql STABLE SET enable_seqscan TO off AS $function$
  SELECT coalesce(json_agg(${JOB_SUMMARY}), '[]') FROM @.jobs WHERE board = p_board AND session IS NOT NULL
$function$;`
}
