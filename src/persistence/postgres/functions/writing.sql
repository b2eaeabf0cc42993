-- Functions that write to logbooks. They are functions so that the server plans each statement once for a connection: a plan takes longer than the
-- write of ten flows.
--
-- Joins compare by `= ANY(ARRAY[…])`, and plans that read whole tables are forbidden: a table that Postgres believes to be small would be read
-- by each write.

-- Makes flows that do not exist yet, each with its first write, and their books.
--
-- Arrays with one element for each flow: book, its name and meta, flow, name, version, run, claim, number of the write, state, meta, states, time of
-- the acquire and of the write in milliseconds. Then, with one element for each atom: the position of its flow, from 1, whether it is new, and its
-- columns, with the times of its creation and its change in milliseconds. Returns the position of each flow that was made, from 1, and its number.
CREATE OR REPLACE FUNCTION :SCHEMA.begin_flows(
  p_books text[], p_book_names text[], p_book_metas bytea[], p_flows text[], p_names text[], p_versions text[], p_runs bigint[], p_claims text[],
  p_writes bigint[], p_states text[], p_metas bytea[], p_histories text[], p_created float8[], p_times float8[],
  p_of bigint[], p_new boolean[], p_atoms text[], p_positions integer[], p_kinds text[], p_atom_versions text[], p_atom_states text[],
  p_intentions text[], p_bodies bytea[], p_atom_histories text[], p_atom_created float8[], p_atom_updated float8[])
RETURNS TABLE (o_position bigint, o_flow bigint) LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  RETURN QUERY
  WITH requested AS MATERIALIZED (
    SELECT a.*, to_timestamp(a.created_ms / 1000) AS created, to_timestamp(a.at_ms / 1000) AS at
    FROM unnest(p_books, p_book_names, p_book_metas, p_flows, p_names, p_versions, p_runs, p_claims, p_writes, p_states, p_metas, p_histories,
        p_created, p_times) WITH ORDINALITY
      AS a(book, book_name, book_meta, uuid, name, version, run, claim, writes, state, meta, states, created_ms, at_ms, number)
  ), made AS (
    INSERT INTO :SCHEMA.books AS b (uuid, name, meta, created_at, updated_at)
    SELECT DISTINCT ON (a.book) a.book, a.book_name, a.book_meta, a.created, a.created FROM requested a ORDER BY a.book, a.number
    ON CONFLICT (uuid) DO UPDATE SET name = b.name
    RETURNING b.id, b.uuid
  ), begun AS (
    INSERT INTO :SCHEMA.flows AS f (book, uuid, name, version, state, meta, states, run, claim, term, writes, created_at, updated_at)
    SELECT m.id, a.uuid, a.name, a.version, a.state, a.meta, a.states::jsonb, a.run, a.claim, 1, a.writes, a.created, a.at
    FROM requested a JOIN made m ON m.uuid = a.book ORDER BY m.id, a.uuid
    ON CONFLICT (book, uuid) DO NOTHING
    RETURNING f.id, f.claim
  ), added AS (
    INSERT INTO :SCHEMA.atoms (flow, name, position, kind, version, state, intention, body, states, created_at, updated_at)
    SELECT f.id, t.name, t.position, t.kind, t.version, t.state, t.intention, t.body, t.states::jsonb,
      to_timestamp(t.created_ms / 1000), to_timestamp(t.updated_ms / 1000)
    FROM unnest(p_of, p_atoms, p_positions, p_kinds, p_atom_versions, p_atom_states, p_intentions, p_bodies, p_atom_histories,
        p_atom_created, p_atom_updated)
      AS t(number, name, position, kind, version, state, intention, body, states, created_ms, updated_ms)
    JOIN requested a ON a.number = t.number JOIN begun f ON f.claim = a.claim
  )
  SELECT a.number, f.id FROM begun f JOIN requested a ON a.claim = f.claim;
END $function$;

-- Writes transitions of flows. A flow whose term is another one, or that has this write or a later one already, is not changed.
--
-- Arrays with one element for each flow: number, term, claim (or null for all), number of the write, state, meta (or null), states (or null), time in
-- milliseconds. Then the atoms, as in begin_flows; an atom that is not new is changed. Returns the number and the term of each flow that was changed.
CREATE OR REPLACE FUNCTION :SCHEMA.write_flows(
  p_flows bigint[], p_terms bigint[], p_claims text[], p_writes bigint[], p_states text[], p_metas bytea[], p_histories text[], p_times float8[],
  p_of bigint[], p_new boolean[], p_atoms text[], p_positions integer[], p_kinds text[], p_atom_versions text[], p_atom_states text[],
  p_intentions text[], p_bodies bytea[], p_atom_histories text[], p_atom_created float8[], p_atom_updated float8[])
RETURNS TABLE (o_flow bigint, o_term bigint) LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  RETURN QUERY
  WITH submitted AS MATERIALIZED (
    SELECT * FROM unnest(p_flows, p_terms, p_claims, p_writes, p_states, p_metas, p_histories, p_times) WITH ORDINALITY
      AS w(id, term, claim, writes, state, meta, states, at_ms, number) ORDER BY w.id
  ), moved AS (
    UPDATE :SCHEMA.flows f SET writes = w.writes, state = w.state, updated_at = to_timestamp(w.at_ms / 1000),
      meta = coalesce(w.meta, f.meta), states = coalesce(w.states::jsonb, f.states)
    FROM submitted w
    WHERE f.id = ANY(ARRAY[w.id]) AND f.term = w.term AND f.claim = coalesce(w.claim, f.claim) AND f.writes < w.writes
    RETURNING f.id, f.term, w.number
  ), written AS MATERIALIZED (
    SELECT m.id AS flow, t.* FROM unnest(p_of, p_new, p_atoms, p_positions, p_kinds, p_atom_versions, p_atom_states, p_intentions, p_bodies,
        p_atom_histories, p_atom_created, p_atom_updated)
      AS t(number, is_new, name, position, kind, version, state, intention, body, states, created_ms, updated_ms)
    JOIN moved m ON m.number = t.number
  ), added AS (
    INSERT INTO :SCHEMA.atoms (flow, name, position, kind, version, state, intention, body, states, created_at, updated_at)
    SELECT t.flow, t.name, t.position, t.kind, t.version, t.state, t.intention, t.body, t.states::jsonb,
      to_timestamp(t.created_ms / 1000), to_timestamp(t.updated_ms / 1000)
    FROM written t WHERE t.is_new
  ), changed AS (
    UPDATE :SCHEMA.atoms a SET kind = t.kind, version = t.version, state = t.state, intention = t.intention, body = t.body,
      states = t.states::jsonb, updated_at = to_timestamp(t.updated_ms / 1000)
    FROM written t WHERE NOT t.is_new AND a.flow = ANY(ARRAY[t.flow]) AND a.name = ANY(ARRAY[t.name])
  )
  SELECT m.id, m.term FROM moved m;
END $function$;
