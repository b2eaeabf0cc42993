/** SQL functions that restore a job from the trash, or purge it. */

/** Returns the functions, with `@` for the schema. */
export function trashFunctions(): string {
  return `
CREATE FUNCTION @.restore(p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_life bytea, p_priority text,
  p_key bytea, p_owner_lost text) RETURNS json LANGUAGE plpgsql AS $function$
DECLARE
  v_entry @.trash;
  v_id bigint;
  v_rank smallint;
BEGIN
  SELECT * INTO v_entry FROM @.trash WHERE board = p_board AND id = p_id FOR UPDATE;
  IF NOT FOUND THEN RETURN @.answer(p_lane, p_number, '"gone"'); END IF;
  INSERT INTO @.jobs (board, uuid, name, priority, key, on_owner_lost, body, life)
  VALUES (p_board, v_entry.uuid, v_entry.name, p_priority, p_key, p_owner_lost, v_entry.body, p_life)
  ON CONFLICT (board, key) WHERE key IS NOT NULL DO NOTHING RETURNING id, rank INTO v_id, v_rank;
  IF v_id IS NULL THEN RETURN @.answer(p_lane, p_number, '"taken"'); END IF;
  DELETE FROM @.trash WHERE board = p_board AND id = p_id;
  PERFORM @.tell(p_board, 'posted', ARRAY[v_id], ARRAY[v_rank]);
  RETURN @.answer(p_lane, p_number, '"done"');
END $function$;

CREATE FUNCTION @.purge(p_lane uuid, p_number bigint, p_board integer, p_id bigint) RETURNS json LANGUAGE plpgsql AS $function$
BEGIN
  DELETE FROM @.trash WHERE board = p_board AND id = p_id;
  RETURN @.answer(p_lane, p_number, CASE WHEN FOUND THEN '"done"'::json ELSE '"gone"' END);
END $function$;`
}
