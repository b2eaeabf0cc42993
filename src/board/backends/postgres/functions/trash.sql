-- Functions that move an unclaimed job to the trash, restore it, or purge it. Each returns done, or the reason of the
-- refusal.

-- Moves an unclaimed job to the trash. p_life: the part of its posting that claims change. p_record: its record for the history, which
-- keeps p_keep jobs; null if it is not added. p_at: the time of the entry in milliseconds since 1970, or null for now.
--
-- Returns done, or {doomed} with the jobs that were cancelled before their first run; changed if the job is claimed or has another
-- revision, or gone if it has left the board.
CREATE OR REPLACE FUNCTION :SCHEMA.discard(
  p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_revision integer, p_life bytea,
  p_who text, p_reason text, p_failure bytea, p_record bytea, p_keep integer, p_at float8)
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_job :SCHEMA.jobs;
  v_dependents bigint[];
  v_doomed bigint[];
BEGIN
  DELETE FROM :SCHEMA.jobs WHERE id = p_id AND session IS NULL AND revision = p_revision RETURNING * INTO v_job;
  IF NOT FOUND THEN
    PERFORM FROM :SCHEMA.jobs WHERE id = p_id;
    RETURN :SCHEMA.answer(p_lane, p_number, CASE WHEN FOUND THEN '"changed"'::json ELSE '"gone"' END);
  END IF;
  v_dependents := :SCHEMA.lock_dependents(ARRAY[p_id]);
  DELETE FROM :SCHEMA.dependencies WHERE job = p_id;
  INSERT INTO :SCHEMA.trash (id, board, uuid, name, body, life, who, reason, failure, trashed_at)
  VALUES (v_job.id, p_board, v_job.uuid, v_job.name, v_job.body, p_life, p_who, p_reason, p_failure,
    coalesce(to_timestamp(p_at / 1000), clock_timestamp()));
  PERFORM :SCHEMA.log_change(p_board, 'trashed', ARRAY[p_id]);
  IF v_dependents IS NOT NULL THEN
    PERFORM :SCHEMA.release_dependents(p_board, NULL, ARRAY[p_id]);
    v_doomed := :SCHEMA.doomed_jobs(v_dependents);
  END IF;
  IF p_record IS NOT NULL THEN
    PERFORM :SCHEMA.add_history(p_board, ARRAY[p_id], ARRAY[p_id], ARRAY[v_job.uuid], p_record, ARRAY[length(p_record)], p_keep);
  END IF;
  IF v_job.batch IS NOT NULL THEN
    INSERT INTO :SCHEMA.batch_failures (job, batch) VALUES (p_id, v_job.batch);
    PERFORM :SCHEMA.count_ends(ARRAY[v_job.batch]);
  END IF;
  RETURN :SCHEMA.answer(p_lane, p_number, CASE WHEN v_doomed IS NULL THEN '"done"'::json ELSE json_build_object('doomed', v_doomed) END);
END $function$;

-- Moves an entry of the trash back to the board, as a new job. Its batch, if it is kept, counts the job as open again.
--
-- p_life: the part of its posting that claims change. p_after and p_settled: its dependencies, and p_window: the window of its key, as in
-- the function post. Returns done; gone if there is no such entry; taken if the key is taken by a job, or by the window of another job;
-- duplicate if a job with its uuid is open in its batch; or {gone}, the numbers of the jobs on which it would depend and which are not on
-- the board.
CREATE OR REPLACE FUNCTION :SCHEMA.restore(
  p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_life bytea, p_priority text,
  p_key bytea, p_owner_lost text, p_after bigint[], p_settled boolean[], p_window float8)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_entry :SCHEMA.trash;
  v_id bigint;
  v_rank smallint;
  v_missing bigint[];
  v_waits boolean := p_after <> '{}';
  v_batch record;
BEGIN
  SELECT * INTO v_entry FROM :SCHEMA.trash WHERE board = p_board AND id = p_id FOR UPDATE;
  IF NOT FOUND THEN RETURN :SCHEMA.answer(p_lane, p_number, '"gone"'); END IF;
  v_missing := CASE WHEN v_waits THEN :SCHEMA.lock_dependencies(p_board, p_after) END;
  IF v_missing IS NOT NULL THEN
    RETURN :SCHEMA.answer(p_lane, p_number, json_build_object('gone', v_missing));
  END IF;
  SELECT b.* INTO v_batch FROM :SCHEMA.batches b
  WHERE b.number = (SELECT f.batch FROM :SCHEMA.batch_failures f WHERE f.job = p_id) FOR NO KEY UPDATE;
  INSERT INTO :SCHEMA.jobs (board, uuid, name, priority, key, on_owner_lost, body, life, due_at, due_when_ready, batch, queue)
  VALUES (p_board, v_entry.uuid, v_entry.name, :SCHEMA.priority_in(p_priority), p_key, p_owner_lost, v_entry.body, p_life,
    CASE WHEN v_waits THEN 'infinity' ELSE '-infinity' END::timestamptz, CASE WHEN v_waits THEN '-infinity'::timestamptz END, v_batch.number,
    :SCHEMA.queue_in(p_priority))
  ON CONFLICT DO NOTHING RETURNING id, rank INTO v_id, v_rank;
  IF v_id IS NULL THEN
    PERFORM FROM :SCHEMA.jobs WHERE batch = v_batch.number AND uuid = v_entry.uuid;
    RETURN :SCHEMA.answer(p_lane, p_number, CASE WHEN FOUND THEN '"duplicate"'::json ELSE '"taken"' END);
  END IF;
  IF p_key IS NOT NULL AND
      :SCHEMA.take_keys(p_board, ARRAY[v_id], ARRAY[p_key], ARRAY[v_entry.uuid], ARRAY[p_window], p_id) IS NOT NULL THEN
    DELETE FROM :SCHEMA.jobs WHERE id = v_id;
    RETURN :SCHEMA.answer(p_lane, p_number, '"taken"');
  END IF;
  DELETE FROM :SCHEMA.trash WHERE board = p_board AND id = p_id;
  DELETE FROM :SCHEMA.batch_failures WHERE job = p_id;
  IF v_batch.ended_at IS NOT NULL THEN PERFORM :SCHEMA.reopen_batch(v_batch.number, true); END IF;
  IF v_batch.number IS NOT NULL THEN PERFORM :SCHEMA.notify_batch(p_board, v_batch.uuid); END IF;
  IF v_waits THEN
    INSERT INTO :SCHEMA.dependencies (board, job, waits_for, settled)
    SELECT p_board, v_id, other, settled FROM unnest(p_after, p_settled) AS a(other, settled) ON CONFLICT (waits_for, job) DO NOTHING;
  END IF;
  PERFORM :SCHEMA.log_placed(p_board, 'posted', ARRAY[v_id], ARRAY[v_rank], CASE WHEN v_waits THEN ARRAY['infinity'::float8] END);
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
