/** SQL function that moves an unclaimed job to the trash. */

/** Returns the function, with `@` for the schema. */
export function discardFunctions(): string {
  return `
CREATE FUNCTION @.discard(p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_revision integer, p_life bytea,
  p_who text, p_reason text, p_failure bytea) RETURNS json LANGUAGE plpgsql AS $function$
DECLARE v_job @.jobs;
BEGIN
  DELETE FROM @.jobs WHERE id = p_id AND session IS NULL AND revision = p_revision RETURNING * INTO v_job;
  IF NOT FOUND THEN
    PERFORM FROM @.jobs WHERE id = p_id;
    RETURN @.answer(p_lane, p_number, CASE WHEN FOUND THEN '"changed"'::json ELSE '"gone"' END);
  END IF;
  INSERT INTO @.trash (id, board, uuid, name, body, life, who, reason, failure)
  VALUES (v_job.id, p_board, v_job.uuid, v_job.name, v_job.body, p_life, p_who, p_reason, p_failure);
  PERFORM @.tell(p_board, 'trashed', ARRAY[p_id]);
  RETURN @.answer(p_lane, p_number, '"done"');
END $function$;`
}
