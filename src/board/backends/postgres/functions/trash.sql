-- Functions that move an unclaimed job to the trash, restore it, or purge it. Each returns done, or the reason of the
-- refusal.

-- Moves an unclaimed job to the trash. p_life: the part of its posting that claims change. Returns done, changed if the job
-- is claimed or has another revision, or gone if it has left the board.
CREATE OR REPLACE FUNCTION :SCHEMA.discard(
  p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_revision integer, p_life bytea,
  p_who text, p_reason text, p_failure bytea)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_job :SCHEMA.jobs;
BEGIN
  DELETE FROM :SCHEMA.jobs WHERE id = p_id AND session IS NULL AND revision = p_revision RETURNING * INTO v_job;
  IF NOT FOUND THEN
    PERFORM FROM :SCHEMA.jobs WHERE id = p_id;
    RETURN :SCHEMA.answer(p_lane, p_number, CASE WHEN FOUND THEN '"changed"'::json ELSE '"gone"' END);
  END IF;
  INSERT INTO :SCHEMA.trash (id, board, uuid, name, body, life, who, reason, failure)
  VALUES (v_job.id, p_board, v_job.uuid, v_job.name, v_job.body, p_life, p_who, p_reason, p_failure);
  PERFORM :SCHEMA.log_change(p_board, 'trashed', ARRAY[p_id]);
  RETURN :SCHEMA.answer(p_lane, p_number, '"done"');
END $function$;

-- Moves an entry of the trash back to the board, as a new job. p_life: the part of its posting that claims change. Returns
-- done, gone if there is no such entry, or taken if the key is taken.
CREATE OR REPLACE FUNCTION :SCHEMA.restore(
  p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_life bytea, p_priority text,
  p_key bytea, p_owner_lost text)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_entry :SCHEMA.trash;
  v_id bigint;
  v_rank smallint;
BEGIN
  SELECT * INTO v_entry FROM :SCHEMA.trash WHERE board = p_board AND id = p_id FOR UPDATE;
  IF NOT FOUND THEN RETURN :SCHEMA.answer(p_lane, p_number, '"gone"'); END IF;
  INSERT INTO :SCHEMA.jobs (board, uuid, name, priority, key, on_owner_lost, body, life)
  VALUES (p_board, v_entry.uuid, v_entry.name, p_priority, p_key, p_owner_lost, v_entry.body, p_life)
  ON CONFLICT (board, key) WHERE key IS NOT NULL DO NOTHING RETURNING id, rank INTO v_id, v_rank;
  IF v_id IS NULL THEN RETURN :SCHEMA.answer(p_lane, p_number, '"taken"'); END IF;
  DELETE FROM :SCHEMA.trash WHERE board = p_board AND id = p_id;
  PERFORM :SCHEMA.log_change(p_board, 'posted', ARRAY[v_id], ARRAY[v_rank]);
  RETURN :SCHEMA.answer(p_lane, p_number, '"done"');
END $function$;

-- Deletes an entry of the trash. Returns done, or gone if there is no such entry.
CREATE OR REPLACE FUNCTION :SCHEMA.purge(p_lane uuid, p_number bigint, p_board integer, p_id bigint)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  DELETE FROM :SCHEMA.trash WHERE board = p_board AND id = p_id;
  RETURN :SCHEMA.answer(p_lane, p_number, CASE WHEN FOUND THEN '"done"'::json ELSE '"gone"' END);
END $function$;
