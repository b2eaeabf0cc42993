/** SQL function that posts jobs. */
import { rank } from '../../../model/priority.ts'
import { INDEX_SCAN_SETTINGS } from './plans.ts'

/** The rank of most jobs, which changes do not include. */
const DEFAULT_RANK = rank('NORMAL')

/** Returns the function, with `@` for the schema. */
export function postFunctions(): string {
  return `
CREATE FUNCTION @.post(p_lane uuid, p_number bigint, p_board integer, p_bodies bytea, p_lengths integer[], p_uuids text[],
  p_names text[], p_priorities text[], p_keys bytea[], p_owner_lost text[], p_delays float8[])
RETURNS json LANGUAGE plpgsql ${INDEX_SCAN_SETTINGS} AS $function$
DECLARE
  v_ids bigint[];
  v_made bigint[];
  v_ranks smallint[];
  v_dues float8[];
  v_taken json;
BEGIN
  SELECT array_agg(nextval('@.job_ids')) INTO v_ids FROM generate_subscripts(p_lengths, 1);
  WITH asked AS (
    SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start, clock_timestamp() AS now
    FROM unnest(v_ids, p_lengths, p_uuids, p_names, p_priorities, p_keys, p_owner_lost, p_delays)
      WITH ORDINALITY AS a(id, length, uuid, name, priority, key, owner_lost, delay, at)
  ), made AS (
    INSERT INTO @.jobs (id, board, uuid, name, priority, key, on_owner_lost, body, posted_at, written_at, due_at)
    SELECT id, p_board, uuid, name, priority, key, owner_lost, substring(p_bodies FROM start::integer FOR length), now, now,
      coalesce(now + delay * interval '1 ms', '-infinity')
    FROM asked ORDER BY key, id
    ON CONFLICT (board, key) WHERE key IS NOT NULL DO NOTHING RETURNING id, rank, due_at
  )
  SELECT array_agg(id ORDER BY id), CASE WHEN bool_or(rank <> ${DEFAULT_RANK}) THEN array_agg(rank ORDER BY id) END,
    CASE WHEN bool_or(due_at > '-infinity') THEN array_agg(@.milliseconds(due_at) ORDER BY id) END
  INTO v_made, v_ranks, v_dues FROM made;
  IF v_made IS NOT NULL THEN PERFORM @.tell(p_board, 'posted', v_made, v_ranks, v_dues); END IF;
  IF v_made IS NULL OR cardinality(v_made) < cardinality(v_ids) THEN
    SELECT json_object_agg(a.at - 1, json_build_array(j.uuid, j.id)) INTO v_taken
    FROM unnest(v_ids, p_keys) WITH ORDINALITY AS a(id, key, at)
    LEFT JOIN @.jobs j ON j.board = p_board AND j.key = ANY(ARRAY[a.key])
    WHERE a.id <> ALL(coalesce(v_made, '{}'));
  END IF;
  RETURN @.answer(p_lane, p_number, json_build_object('ids', v_ids, 'taken', v_taken));
END $function$;`
}
