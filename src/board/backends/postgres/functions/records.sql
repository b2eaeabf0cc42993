-- Function that changes records, and posts jobs in the same transaction.
--
-- Rows of records are locked before the rows of jobs, in the order of kind and digest. Before them, a change of a limit, or of a setting of flows, locks the table of
-- boards, which claims share: claims that are under way end first, and each later one finds another revision of the limits.

-- Changes records and posts jobs: all or nothing.
--
-- Arrays with one element for each change: p_kinds, p_digests and p_ids (the name), p_revisions (expected revision; null if the record
-- must not exist) and p_lengths (length of its part of p_values, where the new values are joined; null to remove the record). The rest as
-- of the function post; p_bodies is null if nothing is posted.
--
-- Returns {revisions, posted}: the new revision of each record, null for a record that was removed, and what post returns. If nothing was
-- changed, returns why: {record}, the index from 0 of a change whose record is at another revision; {post}, the index of a post whose key
-- is taken; {gone}, the numbers of the jobs on which posts would depend and which are not on the board; or {batch}, as [index, reason], a
-- post that its batch refuses, with the reason as the function post returns it.
CREATE OR REPLACE FUNCTION :SCHEMA.write_records(
  p_lane uuid, p_number bigint, p_board integer, p_kinds text[], p_digests bytea[], p_ids text[], p_revisions bigint[],
  p_values bytea, p_lengths integer[], p_bodies bytea, p_body_lengths integer[], p_uuids text[], p_names text[],
  p_priorities text[], p_keys bytea[], p_owner_lost text[], p_delays float8[], p_dependents integer[], p_after bigint[],
  p_settled boolean[], p_windows float8[], p_batches text[], p_members text[])
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_at integer;
  v_start integer := 1;
  v_revision bigint;
  v_revisions bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_kinds)]);
  v_posted json;
  v_refused text;
BEGIN
  IF p_kinds && ARRAY['limit', 'limit-hold', 'flow-setting'] THEN LOCK TABLE :SCHEMA.boards IN EXCLUSIVE MODE; END IF;
  PERFORM FROM :SCHEMA.records r
  WHERE r.board = p_board AND (r.kind, r.digest) IN (SELECT k, d FROM unnest(p_kinds, p_digests) AS a(k, d))
  ORDER BY r.kind, r.digest FOR UPDATE;
  -- A change that is refused rolls the block back: the changes before it, and no more.
  BEGIN
    FOR v_at IN SELECT at FROM unnest(p_kinds, p_digests) WITH ORDINALITY AS a(kind, digest, at) ORDER BY kind, digest LOOP
      SELECT coalesce(sum(length), 0) + 1 INTO v_start FROM unnest(p_lengths[1:v_at - 1]) AS length;
      v_revision := NULL;
      IF p_lengths[v_at] IS NULL THEN
        DELETE FROM :SCHEMA.records
        WHERE board = p_board AND kind = p_kinds[v_at] AND digest = p_digests[v_at] AND revision = p_revisions[v_at];
        IF NOT FOUND AND (p_revisions[v_at] IS NOT NULL OR EXISTS (SELECT FROM :SCHEMA.records
            WHERE board = p_board AND kind = p_kinds[v_at] AND digest = p_digests[v_at])) THEN
          RAISE EXCEPTION 'refused' USING ERRCODE = 'P0J02', DETAIL = json_build_object('record', v_at - 1);
        END IF;
      ELSIF p_revisions[v_at] IS NULL THEN
        INSERT INTO :SCHEMA.records (board, kind, digest, id, value)
        VALUES (p_board, p_kinds[v_at], p_digests[v_at], p_ids[v_at], substring(p_values FROM v_start FOR p_lengths[v_at]))
        ON CONFLICT (board, kind, digest) DO NOTHING RETURNING revision INTO v_revision;
        IF NOT FOUND THEN
          RAISE EXCEPTION 'refused' USING ERRCODE = 'P0J02', DETAIL = json_build_object('record', v_at - 1);
        END IF;
      ELSE
        UPDATE :SCHEMA.records
        SET value = substring(p_values FROM v_start FOR p_lengths[v_at]), revision = nextval(':SCHEMA.record_revisions')
        WHERE board = p_board AND kind = p_kinds[v_at] AND digest = p_digests[v_at] AND revision = p_revisions[v_at]
        RETURNING revision INTO v_revision;
        IF NOT FOUND THEN
          RAISE EXCEPTION 'refused' USING ERRCODE = 'P0J02', DETAIL = json_build_object('record', v_at - 1);
        END IF;
      END IF;
      v_revisions[v_at] := v_revision;
    END LOOP;
    IF p_kinds && ARRAY['limit', 'limit-hold', 'flow-setting'] THEN
      UPDATE :SCHEMA.boards SET limits = limits + 1 WHERE id = p_board;
    END IF;
    IF p_bodies IS NOT NULL THEN
      v_posted := :SCHEMA.post(NULL, 0, p_board, p_bodies, p_body_lengths, p_uuids, p_names, p_priorities, p_keys, p_owner_lost,
        p_delays, p_dependents, p_after, p_settled, p_windows, p_batches, p_members);
      IF v_posted ->> 'gone' IS NOT NULL THEN
        RAISE EXCEPTION 'refused' USING ERRCODE = 'P0J02',
          DETAIL = json_build_object('gone', (
            SELECT json_agg(DISTINCT job::bigint) FROM json_each(v_posted -> 'gone') AS g, json_array_elements_text(g.value) AS job));
      END IF;
      IF v_posted ->> 'barred' IS NOT NULL THEN
        RAISE EXCEPTION 'refused' USING ERRCODE = 'P0J02', DETAIL = json_build_object('batch', (
          SELECT json_build_array(key::integer, value) FROM json_each(v_posted -> 'barred') ORDER BY key::integer LIMIT 1));
      END IF;
      IF v_posted ->> 'taken' IS NOT NULL THEN
        RAISE EXCEPTION 'refused' USING ERRCODE = 'P0J02',
          DETAIL = json_build_object('post', (SELECT min(k::integer) FROM json_object_keys(v_posted -> 'taken') AS k));
      END IF;
    END IF;
  EXCEPTION WHEN SQLSTATE 'P0J02' THEN
    GET STACKED DIAGNOSTICS v_refused = PG_EXCEPTION_DETAIL;
    RETURN :SCHEMA.answer(p_lane, p_number, v_refused::json);
  END;
  PERFORM pg_notify(':CHANNEL' || p_board || '_r', kind || ' ' || id) FROM unnest(p_kinds, p_ids) AS a(kind, id);
  RETURN :SCHEMA.answer(p_lane, p_number, json_build_object('revisions', v_revisions, 'posted', v_posted));
END $function$;
