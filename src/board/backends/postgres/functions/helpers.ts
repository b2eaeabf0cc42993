/** SQL functions that others share: they record and notify changes, and keep each answer until the next request of its lane. */
import { channelName } from '../names.ts'
import { INDEX_SCAN_SETTINGS } from './plans.ts'

/** Returns the functions, with `@` for the schema. */
export function helperFunctions(schema: string): string {
  return `
CREATE FUNCTION @.milliseconds(p_at timestamptz) RETURNS float8 LANGUAGE sql IMMUTABLE AS $function$
  SELECT CASE WHEN p_at OPERATOR(pg_catalog.=) '-infinity'::timestamptz THEN 0::float8
    ELSE extract(epoch FROM p_at)::float8 OPERATOR(pg_catalog.*) 1000::float8 END
$function$;

CREATE FUNCTION @.tell(p_board integer, p_kind text, p_jobs bigint[], p_ranks smallint[] DEFAULT NULL,
  p_dues float8[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $function$
BEGIN
  INSERT INTO @.changes (board, kind, jobs, ranks, dues) VALUES (p_board, p_kind, p_jobs, p_ranks, p_dues);
  PERFORM pg_notify('${channelName(schema, '')}' || p_board, '');
END $function$;

CREATE FUNCTION @.answer(p_lane uuid, p_number bigint, p_answer json) RETURNS json LANGUAGE plpgsql AS $function$
BEGIN
  IF p_lane IS NULL THEN RETURN p_answer; END IF;
  INSERT INTO @.receipts AS r (lane, number, answer) VALUES (p_lane, p_number, p_answer)
  ON CONFLICT (lane) DO UPDATE SET number = excluded.number, answer = excluded.answer, at = clock_timestamp()
    WHERE r.number < excluded.number;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'request % was given up', p_number USING ERRCODE = 'P0J01';
  END IF;
  RETURN p_answer;
END $function$;

CREATE FUNCTION @.find_out(p_lane uuid, p_number bigint) RETURNS json LANGUAGE plpgsql AS $function$
DECLARE v_answer json;
BEGIN
  INSERT INTO @.receipts AS r (lane, number) VALUES (p_lane, p_number)
  ON CONFLICT (lane) DO UPDATE SET number = excluded.number, answer = NULL, at = clock_timestamp()
    WHERE r.number < excluded.number;
  IF NOT FOUND THEN SELECT answer INTO v_answer FROM @.receipts WHERE lane = p_lane AND number = p_number; END IF;
  RETURN v_answer;
END $function$;

CREATE FUNCTION @.lives(p_session integer) RETURNS boolean LANGUAGE plpgsql AS $function$
BEGIN
  PERFORM FROM @.sessions WHERE id = p_session AND server_start = pg_postmaster_start_time() FOR KEY SHARE;
  RETURN FOUND;
END $function$;

CREATE FUNCTION @.changes_since(p_board integer, p_snapshot pg_snapshot)
RETURNS TABLE (snapshot text, at float8, told json) LANGUAGE sql STABLE ${INDEX_SCAN_SETTINGS} AS $function$
  SELECT pg_current_snapshot()::text, extract(epoch FROM clock_timestamp())::float8 * 1000, (
    SELECT json_agg(json_build_array(c.kind, c.jobs, c.ranks, c.dues) ORDER BY c.number) FROM (
      SELECT * FROM @.changes WHERE board = p_board AND transaction >= pg_snapshot_xmax(p_snapshot)
      UNION ALL
      SELECT * FROM @.changes WHERE board = p_board AND transaction = ANY(ARRAY(SELECT pg_snapshot_xip(p_snapshot)))
    ) c)
$function$;`
}
