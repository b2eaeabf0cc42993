/**
 * SQL functions that claim jobs and their resources for a session, and record the attempts, in one call.
 *
 * A claim reads the fence base and draws its number under a lock of the table of boards. It shares the lock with other claims
 * and holds it until it commits. Only a transaction that holds the lock exclusively changes the base. So no claim adds an
 * older base to a later number.
 */

import { INDEX_SCAN_SETTINGS } from './plans.ts'

/**
 * The time limit for advisory locks of resources, which any role of the database may hold. After it, a claim is refused as
 * if the resource were held, and the other claims of the batch continue.
 */
const MAX_LOCK_WAIT_MS = 2_000

/**
 * The largest number that JavaScript and JSON represent exactly, less a margin for numbers that are drawn concurrently: two
 * claims above it could get the same fence.
 */
const MAX_FENCE = Number.MAX_SAFE_INTEGER - 1_000_000

/** Returns the functions, with `@` for the schema. */
export function claimFunctions(): string {
  return `
CREATE FUNCTION @.raise_fences(p_board integer) RETURNS void LANGUAGE plpgsql AS $function$
BEGIN
  LOCK TABLE @.boards IN EXCLUSIVE MODE;
  UPDATE @.boards SET fence_base = greatest(fence_base,
    floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint - (SELECT last_value FROM @.fences)) WHERE id = p_board;
END $function$;

CREATE FUNCTION @.claim(p_lane uuid, p_number bigint, p_board integer, p_session integer, p_ids bigint[], p_revisions integer[],
  p_whos text[], p_lives bytea, p_lengths integer[], p_asking integer[], p_resources bigint[], p_names text[],
  p_exclusive boolean[]) RETURNS json LANGUAGE plpgsql ${INDEX_SCAN_SETTINGS}
SET lock_timeout TO ${MAX_LOCK_WAIT_MS} AS $function$
DECLARE
  v_refused json;
  v_busy json[] := '{}';
  v_blocked integer[] := '{}';
  v_stuck bigint[] := '{}';
  v_at integer;
  v_name text;
  v_granted bigint[];
  v_places integer[];
  v_fences bigint[];
  v_paused boolean;
  v_base bigint;
BEGIN
  UPDATE @.sessions SET fences = '@.fences'::regclass
  WHERE id = p_session AND fences IS DISTINCT FROM '@.fences'::regclass::oid;
  IF FOUND THEN PERFORM @.raise_fences(p_board); END IF;
  IF NOT @.lives(p_session) THEN RETURN @.answer(p_lane, p_number, '{"over": true}'); END IF;
  LOCK TABLE @.boards IN ROW SHARE MODE;
  SELECT paused, fence_base INTO v_paused, v_base FROM @.boards WHERE id = p_board;
  IF v_paused THEN RETURN @.answer(p_lane, p_number, '{"paused": true}'); END IF;
  IF v_base::numeric + (SELECT last_value FROM @.fences) >= ${MAX_FENCE} THEN
    RETURN @.answer(p_lane, p_number, '{"outOfFences": true}');
  END IF;
  IF p_resources <> '{}' THEN
    BEGIN
      PERFORM CASE WHEN alone THEN pg_advisory_xact_lock(r) ELSE pg_advisory_xact_lock_shared(r) END
      FROM (SELECT r, bool_or(e) AS alone FROM unnest(p_resources, p_exclusive) AS a(r, e) GROUP BY r ORDER BY r) AS sorted;
    EXCEPTION WHEN lock_not_available THEN
      SELECT coalesce(array_agg(r) FILTER (WHERE NOT CASE WHEN alone THEN pg_try_advisory_xact_lock(r)
        ELSE pg_try_advisory_xact_lock_shared(r) END), '{}') INTO v_stuck
      FROM (SELECT r, bool_or(e) AS alone FROM unnest(p_resources, p_exclusive) AS a(r, e) GROUP BY r ORDER BY r) AS sorted;
    END;
  END IF;
  PERFORM FROM @.jobs WHERE id = ANY(p_ids) AND session IS NULL ORDER BY id FOR NO KEY UPDATE;
  FOR v_at IN SELECT DISTINCT asking FROM unnest(p_asking) AS asking
    JOIN @.jobs j ON j.id = ANY(ARRAY[p_ids[asking]]) AND j.session IS NULL AND j.revision = p_revisions[asking]
    ORDER BY asking
  LOOP
    SELECT a.name INTO v_name FROM unnest(p_asking, p_resources, p_names, p_exclusive) AS a(asking, resource, name, exclusive)
    WHERE a.asking = v_at AND (a.resource = ANY(v_stuck) OR EXISTS (
      SELECT FROM @.permits p JOIN @.sessions s ON s.id = p.session
      WHERE p.resource = ANY(ARRAY[a.resource]) AND p.board = p_board AND p.name = a.name
        AND (p.exclusive OR a.exclusive))) LIMIT 1;
    IF FOUND THEN
      v_blocked := v_blocked || v_at;
      v_busy := v_busy || json_build_array(v_at - 1, 'busy', v_name);
    ELSE
      INSERT INTO @.permits (board, resource, job, name, exclusive, session)
      SELECT p_board, a.resource, p_ids[v_at], a.name, a.exclusive, p_session
      FROM unnest(p_asking, p_resources, p_names, p_exclusive) AS a(asking, resource, name, exclusive) WHERE a.asking = v_at
      ON CONFLICT (board, resource, job, name) DO UPDATE SET exclusive = excluded.exclusive, session = excluded.session;
    END IF;
  END LOOP;
  WITH asked AS (
    SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start
    FROM unnest(p_ids, p_revisions, p_whos, p_lengths) WITH ORDINALITY AS a(id, revision, who, length, at)
  ), granted AS (
    UPDATE @.jobs j SET session = p_session, who = a.who, revision = j.revision + 1, written_at = clock_timestamp(),
      due_at = '-infinity', life = substring(p_lives FROM a.start::integer FOR a.length)
    FROM asked a
    WHERE j.id = ANY(ARRAY[a.id]) AND j.session IS NULL AND j.revision = a.revision AND a.at <> ALL(v_blocked)
    RETURNING j.id, a.at - 1 AS at, v_base + nextval('@.fences') AS fence
  )
  SELECT array_agg(id), array_agg(at), array_agg(fence) INTO v_granted, v_places, v_fences FROM granted;
  IF v_granted IS NOT NULL THEN PERFORM @.tell(p_board, 'claimed', v_granted); END IF;
  IF v_granted IS NULL OR cardinality(v_granted) < cardinality(p_ids) THEN
    SELECT json_agg(json_build_array(a.at - 1, CASE WHEN j.id IS NULL THEN 'gone' ELSE 'changed' END)) INTO v_refused
    FROM unnest(p_ids) WITH ORDINALITY AS a(id, at) LEFT JOIN @.jobs j ON j.id = ANY(ARRAY[a.id])
    WHERE (v_granted IS NULL OR a.id <> ALL(v_granted)) AND a.at <> ALL(v_blocked);
  END IF;
  RETURN @.answer(p_lane, p_number, json_build_object('granted', v_places, 'fences', v_fences, 'refused', v_refused,
    'busy', array_to_json(v_busy)));
END $function$;`
}
