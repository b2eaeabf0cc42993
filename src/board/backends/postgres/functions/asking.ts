/** SQL functions that pause a board, cancel a job, and delete obsolete changes and receipts. */
/**
 * Returns the functions, with `@` for the schema. The gate is closed and opened under a lock of the table of boards, which
 * claims share. Such a lock serves waiters in order, and requires the right to write the table; any role can take an advisory lock.
 */
export function requestFunctions(): string {
  return `
CREATE FUNCTION @.cancel(p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_who text, p_reason text)
RETURNS json LANGUAGE plpgsql AS $function$
BEGIN
  UPDATE @.jobs SET cancelled_by = p_who, cancel_reason = p_reason, due_at = '-infinity'
  WHERE id = p_id AND cancelled_by IS NULL;
  IF FOUND THEN
    PERFORM @.tell(p_board, 'cancelled', ARRAY[p_id]);
    RETURN @.answer(p_lane, p_number, '"done"');
  END IF;
  PERFORM FROM @.jobs WHERE id = p_id;
  RETURN @.answer(p_lane, p_number, CASE WHEN FOUND THEN '"done"'::json ELSE '"gone"' END);
END $function$;

CREATE FUNCTION @.set_gate(p_lane uuid, p_number bigint, p_board integer, p_paused boolean)
RETURNS json LANGUAGE plpgsql AS $function$
BEGIN
  LOCK TABLE @.boards IN EXCLUSIVE MODE;
  UPDATE @.boards SET paused = p_paused WHERE id = p_board;
  PERFORM @.tell(p_board, CASE WHEN p_paused THEN 'paused' ELSE 'resumed' END, '{}');
  RETURN @.answer(p_lane, p_number, '"done"');
END $function$;

CREATE FUNCTION @.prune(p_board integer) RETURNS void LANGUAGE plpgsql AS $function$
DECLARE v_horizon pg_snapshot;
BEGIN
  SELECT horizon INTO v_horizon FROM @.boards
  WHERE id = p_board AND horizon_at < clock_timestamp() - interval '2 minutes' FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  DELETE FROM @.changes WHERE board = p_board AND transaction < pg_snapshot_xmax(v_horizon)
    AND pg_visible_in_snapshot(transaction, v_horizon);
  DELETE FROM @.receipts WHERE at < clock_timestamp() - interval '1 day';
  UPDATE @.boards SET horizon = pg_current_snapshot(), horizon_at = clock_timestamp() WHERE id = p_board;
END $function$;`
}
