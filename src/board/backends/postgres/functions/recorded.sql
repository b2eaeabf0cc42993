-- Function that settles claims and records the ends of their flows, where the logbooks are in the schema of the board.

-- Settles a group of claims as settle does, and writes the ends of flows to their logbooks, in one transaction.
--
-- The parameters up to p_keep: as in settle. p_jobs: for each flow the number of its job. The other parameters: as in write_flows, a function of the
-- logbooks (src/persistence/postgres/functions/writing.sql). p_claims: random ids of acquires, not claims of jobs; they prove that the run has acquired
-- the flow. Returns what settle returns.
--
-- The flow of a claim that this session no longer has is not written. Raises P0J02, which undoes everything, if a flow was acquired by another run or
-- was removed: its claim must not be settled as done.
CREATE OR REPLACE FUNCTION :SCHEMA.settle_recorded(
  p_lane uuid, p_number bigint, p_board integer, p_session integer, p_ids bigint[], p_revisions integer[],
  p_kinds text[], p_lives bytea, p_lengths integer[], p_delays float8[], p_whos text[], p_reasons text[], p_failures bytea[],
  p_holding boolean, p_uuids text[], p_records bytea, p_record_lengths integer[], p_keep integer,
  p_jobs bigint[], p_flows bigint[], p_terms bigint[], p_claims text[], p_writes bigint[], p_states text[], p_metas bytea[], p_histories text[],
  p_times float8[], p_of bigint[], p_new boolean[], p_atoms text[], p_positions integer[], p_atom_kinds text[], p_atom_versions text[],
  p_atom_states text[], p_intentions text[], p_bodies bytea[], p_atom_histories text[], p_atom_created float8[], p_atom_updated float8[])
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_held bigint[];
  v_written text[];
  v_missing bigint;
BEGIN
  IF NOT :SCHEMA.is_alive(p_session) THEN RETURN :SCHEMA.answer(p_lane, p_number, '{"over": true}'); END IF;
  WITH locked AS (
    SELECT id, revision FROM :SCHEMA.jobs WHERE id = ANY(p_ids) AND coalesce(session, 0) = p_session ORDER BY id FOR UPDATE
  )
  -- Claims on the plain path of settle have one revision together.
  SELECT array_agg(id) INTO v_held FROM locked
  WHERE revision = coalesce(p_revisions[array_position(p_ids, id)], p_revisions[1]);
  -- No flow has a negative term.
  -- With the term: the write of a newer run of the flow may be in the same group.
  SELECT array_agg(o_flow || ' ' || o_term) INTO v_written FROM :SCHEMA.write_flows(p_flows,
    ARRAY(SELECT CASE WHEN job = ANY(v_held) THEN term ELSE -1 END FROM unnest(p_jobs, p_terms) WITH ORDINALITY AS w(job, term, at) ORDER BY at),
    p_claims, p_writes, p_states, p_metas, p_histories, p_times, p_of, p_new, p_atoms, p_positions, p_atom_kinds, p_atom_versions, p_atom_states,
    p_intentions, p_bodies, p_atom_histories, p_atom_created, p_atom_updated);
  SELECT job INTO v_missing FROM unnest(p_jobs, p_flows, p_terms) AS w(job, flow, term)
  WHERE job = ANY(v_held) AND flow || ' ' || term <> ALL(coalesce(v_written, '{}')) LIMIT 1;
  IF FOUND THEN RAISE EXCEPTION 'the logbook of job % was acquired by another run, or removed', v_missing USING ERRCODE = 'P0J02'; END IF;
  RETURN :SCHEMA.settle(p_lane, p_number, p_board, p_session, p_ids, p_revisions, p_kinds, p_lives, p_lengths, p_delays, p_whos,
    p_reasons, p_failures, p_holding, p_uuids, p_records, p_record_lengths, p_keep);
END $function$;
