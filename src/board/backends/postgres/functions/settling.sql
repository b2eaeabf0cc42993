-- Function that settles claims. The settings are explained in posting.sql.

-- Settles a group of claims of one session, each as requested.
--
-- A group of consumed jobs of the same revision takes the plain path: each job is found once, where it is deleted. Its array p_revisions has one element, and
-- p_kinds, too; p_lengths and the arrays after it up to p_failures may be empty.
--
-- Arrays with one element for each job: number, revision, kind (consume, abandon or trash), length of its part of p_lives (where the parts
-- of postings that claims change are joined), delay of an abandoned job in milliseconds or null. For a trashed job also: the name of the
-- owner, the reason, and the failure. p_holding: whether any of the jobs may hold resources or slots. For the history: p_uuids, p_records,
-- p_record_lengths and p_keep, as in add_history; p_keep is null if no job is added. Returns {lost}: the indexes of the claims that this
-- session no longer has, from 0; {} if it had all; {over} if the session has ended; with {doomed} if jobs were cancelled before their first run.
CREATE OR REPLACE FUNCTION :SCHEMA.settle(
  p_lane uuid, p_number bigint, p_board integer, p_session integer, p_ids bigint[], p_revisions integer[],
  p_kinds text[], p_lives bytea, p_lengths integer[], p_delays float8[], p_whos text[], p_reasons text[], p_failures bytea[],
  p_holding boolean, p_uuids text[], p_records bytea, p_record_lengths integer[], p_keep integer)
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET enable_bitmapscan TO off
SET plan_cache_mode TO force_generic_plan
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_consumed bigint[];
  v_abandoned bigint[];
  v_trashed bigint[];
  v_done bigint[];
  v_dependents bigint[];
  v_batches bigint[] := '{}';
  v_others bigint[];
  v_doomed bigint[];
  v_first bigint;
  v_last bigint;
BEGIN
  IF NOT :SCHEMA.is_alive(p_session) THEN RETURN :SCHEMA.answer(p_lane, p_number, '{"over": true}'); END IF;
  IF cardinality(p_revisions) = 1 AND p_kinds = '{consume}' AND NOT p_holding THEN
    WITH consumed AS (
      DELETE FROM :SCHEMA.jobs WHERE id = ANY(p_ids) AND coalesce(session, 0) = p_session AND revision = p_revisions[1]
      RETURNING id, batch
    )
    SELECT array_agg(id), array_agg(batch) FILTER (WHERE batch IS NOT NULL), min(id), max(id) INTO v_consumed, v_batches, v_first, v_last FROM consumed;
    IF v_consumed IS NOT NULL THEN
      -- A dependency on one of these jobs was committed before the job was locked: see dependencies.sql.
      IF EXISTS (SELECT FROM :SCHEMA.dependencies WHERE waits_for >= v_first AND waits_for <= v_last) THEN
        v_dependents := :SCHEMA.lock_dependents(v_consumed);
      END IF;
      PERFORM :SCHEMA.log_change(p_board, 'consumed', v_consumed);
      IF v_dependents IS NOT NULL THEN PERFORM :SCHEMA.release_dependents(p_board, v_consumed, NULL); END IF;
      IF p_keep IS NOT NULL THEN
        PERFORM :SCHEMA.add_history(p_board, p_ids, v_consumed, p_uuids, p_records, p_record_lengths, p_keep);
      END IF;
      IF v_batches IS NOT NULL THEN PERFORM :SCHEMA.count_ends(v_batches); END IF;
    END IF;
    IF cardinality(v_consumed) = cardinality(p_ids) THEN RETURN :SCHEMA.answer(p_lane, p_number, '{}'); END IF;
    RETURN :SCHEMA.answer(p_lane, p_number, json_build_object('lost', (
      SELECT json_agg(at - 1) FROM unnest(p_ids) WITH ORDINALITY AS a(id, at) WHERE id <> ALL(coalesce(v_consumed, '{}')))));
  END IF;
  PERFORM FROM :SCHEMA.jobs WHERE id = ANY(p_ids) AND coalesce(session, 0) = p_session ORDER BY id FOR UPDATE;
  v_dependents := :SCHEMA.lock_dependents(ARRAY(SELECT id FROM unnest(p_ids, p_kinds) AS a(id, kind) WHERE kind <> 'abandon'));
  IF 'consume' = ANY(p_kinds) AND 'trash' = ANY(p_kinds) THEN PERFORM :SCHEMA.lock_followers(p_board, p_ids); END IF;
  IF 'consume' = ANY(p_kinds) THEN
    WITH consumed AS (
      DELETE FROM :SCHEMA.jobs j USING unnest(p_ids, p_revisions, p_kinds) AS a(id, revision, kind)
      WHERE j.id = ANY(ARRAY[a.id]) AND coalesce(j.session, 0) = p_session AND j.revision = a.revision AND a.kind = 'consume'
      RETURNING j.id, j.batch
    )
    SELECT array_agg(id), array_agg(DISTINCT batch) INTO v_consumed, v_batches FROM consumed;
    IF v_consumed IS NOT NULL THEN PERFORM :SCHEMA.log_change(p_board, 'consumed', v_consumed); END IF;
  END IF;
  IF 'abandon' = ANY(p_kinds) THEN
    WITH requested AS (
      SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start, clock_timestamp() AS now
      FROM unnest(p_ids, p_revisions, p_kinds, p_lengths, p_delays)
        WITH ORDINALITY AS a(id, revision, kind, length, delay, at)
    ), abandoned AS (
      UPDATE :SCHEMA.jobs j SET session = NULL, who = NULL, revision = j.revision + 1, written_at = a.now,
        due_at = CASE WHEN a.delay IS NULL OR j.cancelled_by IS NOT NULL THEN '-infinity'
          ELSE a.now + a.delay * interval '1 ms' END,
        life = substring(p_lives FROM a.start::integer FOR a.length)
      FROM requested a
      WHERE j.id = ANY(ARRAY[a.id]) AND coalesce(j.session, 0) = p_session AND j.revision = a.revision AND a.kind = 'abandon'
      RETURNING j.id
    )
    SELECT array_agg(id) INTO v_abandoned FROM abandoned;
    IF v_abandoned IS NOT NULL THEN PERFORM :SCHEMA.log_change(p_board, 'abandoned', v_abandoned); END IF;
  END IF;
  IF 'trash' = ANY(p_kinds) THEN
    WITH requested AS (
      SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start
      FROM unnest(p_ids, p_revisions, p_kinds, p_lengths, p_whos, p_reasons, p_failures)
        WITH ORDINALITY AS a(id, revision, kind, length, who, reason, failure, at)
    ), gone AS (
      DELETE FROM :SCHEMA.jobs j USING requested a
      WHERE j.id = ANY(ARRAY[a.id]) AND coalesce(j.session, 0) = p_session AND j.revision = a.revision AND a.kind = 'trash'
      RETURNING j.*, a.start, a.length, a.who AS by_whom, a.reason, a.failure
    ), trashed AS (
      INSERT INTO :SCHEMA.trash (id, board, uuid, name, body, life, who, reason, failure)
      SELECT id, board, uuid, name, body, substring(p_lives FROM start::integer FOR length), by_whom, reason, failure FROM gone
      RETURNING id
    ), failed AS (
      INSERT INTO :SCHEMA.batch_failures (job, batch) SELECT id, batch FROM gone WHERE batch IS NOT NULL
    )
    SELECT array_agg(id), (SELECT array_agg(DISTINCT batch) FROM gone) INTO v_trashed, v_others FROM trashed;
    IF v_trashed IS NOT NULL THEN PERFORM :SCHEMA.log_change(p_board, 'trashed', v_trashed); END IF;
  END IF;
  IF v_dependents IS NOT NULL THEN
    PERFORM :SCHEMA.release_dependents(p_board, v_consumed, v_trashed);
    IF v_trashed IS NOT NULL THEN v_doomed := :SCHEMA.doomed_jobs(v_dependents); END IF;
  END IF;
  IF p_keep IS NOT NULL AND (v_consumed IS NOT NULL OR v_trashed IS NOT NULL) THEN
    PERFORM :SCHEMA.add_history(p_board, p_ids, v_consumed || v_trashed, p_uuids, p_records, p_record_lengths, p_keep);
  END IF;
  v_done := v_consumed || v_abandoned || v_trashed;
  IF p_holding THEN
    DELETE FROM :SCHEMA.permits WHERE job = ANY(v_done) AND board = p_board;
    DELETE FROM :SCHEMA.slots WHERE job = ANY(v_done) AND board = p_board;
  END IF;
  IF num_nonnulls(VARIADIC v_batches || v_others) > 0 THEN PERFORM :SCHEMA.count_ends(v_batches || v_others); END IF;
  IF cardinality(v_done) = cardinality(p_ids) THEN
    RETURN :SCHEMA.answer(p_lane, p_number, CASE WHEN v_doomed IS NULL THEN '{}'::json ELSE json_build_object('doomed', v_doomed) END);
  END IF;
  RETURN :SCHEMA.answer(p_lane, p_number, json_build_object('doomed', v_doomed, 'lost', (
    SELECT json_agg(at - 1) FROM unnest(p_ids) WITH ORDINALITY AS a(id, at) WHERE v_done IS NULL OR id <> ALL(v_done))));
END $function$;
