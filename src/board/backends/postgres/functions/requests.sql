-- Functions that cancel a job, take its claim away, and pause or resume a board.

-- Marks a job as cancelled; a delayed job, or a job that waits for others, becomes due at once. The first request is kept. Returns done, or
-- gone if the job has left the board.
CREATE OR REPLACE FUNCTION :SCHEMA.cancel(p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_who text, p_reason text)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  UPDATE :SCHEMA.jobs SET cancelled_by = p_who, cancel_reason = p_reason, due_at = '-infinity', due_when_ready = NULL
  WHERE id = p_id AND cancelled_by IS NULL;
  IF FOUND THEN
    DELETE FROM :SCHEMA.dependencies WHERE job = p_id;
    PERFORM :SCHEMA.log_change(p_board, 'cancelled', ARRAY[p_id]);
    RETURN :SCHEMA.answer(p_lane, p_number, '"done"');
  END IF;
  PERFORM FROM :SCHEMA.jobs WHERE id = p_id;
  RETURN :SCHEMA.answer(p_lane, p_number, CASE WHEN FOUND THEN '"done"'::json ELSE '"gone"' END);
END $function$;

-- Ends the claim of whichever session holds it at this revision. p_life: the part of the posting that claims change. Returns released,
-- unclaimed, changed if the job has another revision, or gone if it has left the board.
CREATE OR REPLACE FUNCTION :SCHEMA.release(p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_revision integer, p_life bytea)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_job record;
BEGIN
  SELECT session, revision INTO v_job FROM :SCHEMA.jobs WHERE id = p_id AND board = p_board FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN :SCHEMA.answer(p_lane, p_number, '"gone"'); END IF;
  IF v_job.revision <> p_revision THEN RETURN :SCHEMA.answer(p_lane, p_number, '"changed"'); END IF;
  IF v_job.session IS NULL THEN RETURN :SCHEMA.answer(p_lane, p_number, '"unclaimed"'); END IF;
  UPDATE :SCHEMA.jobs SET session = NULL, who = NULL, revision = revision + 1, written_at = clock_timestamp(), due_at = '-infinity', life = p_life
  WHERE id = p_id;
  PERFORM :SCHEMA.log_change(p_board, 'abandoned', ARRAY[p_id]);
  DELETE FROM :SCHEMA.permits WHERE job = p_id AND board = p_board;
  DELETE FROM :SCHEMA.slots WHERE job = p_id AND board = p_board;
  RETURN :SCHEMA.answer(p_lane, p_number, '"released"');
END $function$;

-- Pauses or resumes a board. Returns done.
--
-- The gate is closed and opened under a lock of the table of boards, which claims share. A table lock serves waiters in
-- order, and requires the right to write the table. An advisory lock would not: any role can take it.
CREATE OR REPLACE FUNCTION :SCHEMA.set_gate(p_lane uuid, p_number bigint, p_board integer, p_paused boolean)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  LOCK TABLE :SCHEMA.boards IN EXCLUSIVE MODE;
  UPDATE :SCHEMA.boards SET paused = p_paused WHERE id = p_board;
  PERFORM :SCHEMA.log_change(p_board, CASE WHEN p_paused THEN 'paused' ELSE 'resumed' END, '{}');
  RETURN :SCHEMA.answer(p_lane, p_number, '"done"');
END $function$;
