-- Functions that claim jobs with their resources and limits for a session, and record the attempts, in one call.
--
-- A claim reads the fence base and draws its number under a lock of the table of boards. It shares the lock with other
-- claims and holds it until it commits. Only a transaction that holds the lock exclusively changes the base. So no claim
-- adds an older base to a later number.

-- Raises the fence base of a board to the clock, so that fences grow also after the sequence was restored or created anew.
-- Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.raise_fences(p_board integer)
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  LOCK TABLE :SCHEMA.boards IN EXCLUSIVE MODE;
  UPDATE :SCHEMA.boards SET fence_base = greatest(fence_base,
    floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint - (SELECT last_value FROM :SCHEMA.fences)) WHERE id = p_board;
END $function$;

-- Claims a group of jobs.
--
-- A group of plain jobs (without resources and limits) that have the same owner, revision and life takes the plain path: each job is found once, where it
-- is claimed. Its arrays p_revisions, p_whos and p_lengths have one element. Jobs are found by their primary key, and so locked in the order of their numbers.
--
-- Arrays with one element for each job: p_ids (number), p_revisions (expected revision), p_whos (owner) and p_lengths (length
-- of its part of p_lives, where the parts of postings that claims change are joined). Arrays with one element for each wanted
-- resource: p_asking (the index of its job, from 1), p_resources (number of the resource), p_names and p_exclusive. Arrays with one
-- element for each limit, as of take_limits: p_wanting (the index of its job, from 1), p_keys, p_slots, p_costs, p_bursts and
-- p_spacings. p_limits: the revisions of the limits by which they were found; none for a client that knows of none.
--
-- Returns {granted, fences, refused, busy, limited, arrivals}: the indexes of the granted jobs from 0, the fence of each, and for the other
-- jobs [index, gone, changed or waits] or [index, busy, resource]; limited and arrivals are as take_limits returns them.
-- Returns {limits} if the limits have another revision. Returns {over} if the session has ended, {paused} if the board is
-- paused, and {outOfFences} near 2^53 - 1, the largest number that JavaScript and JSON represent exactly: two claims above
-- it could get the same fence. The limit leaves a margin of a million for numbers that are drawn concurrently.
--
-- Claims that want the same resource come one after another, by a lock of the transaction whose number follows from the board and the
-- resource: two resources may have the same one. The sessions hold locks of the resources themselves, see resources.ts. lock_timeout
-- limits the wait, because any role of the database may take such a lock. After it, a claim is refused as if the resource were held, and
-- the other claims of the group continue.
CREATE OR REPLACE FUNCTION :SCHEMA.claim(
  p_lane uuid, p_number bigint, p_board integer, p_session integer, p_ids bigint[], p_revisions integer[],
  p_whos text[], p_lives bytea, p_lengths integer[], p_asking integer[], p_resources bigint[], p_names text[],
  p_exclusive boolean[], p_limits integer[], p_wanting integer[], p_keys text[], p_slots integer[], p_costs float8[], p_bursts float8[],
  p_spacings float8[])
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET enable_bitmapscan TO off SET lock_timeout TO 2000
SET plan_cache_mode TO force_generic_plan
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_refused json;
  v_waiting bigint[];
  v_taken_resources json[] := '{}';
  v_blocked integer[] := '{}';
  v_unlockable integer[] := '{}';
  v_at integer;
  v_name text;
  v_granted bigint[];
  v_places integer[];
  v_fences bigint[];
  v_paused boolean;
  v_base bigint;
  v_limits integer;
  v_limitable integer[];
  v_taken json;
  v_stopped integer[];
  v_has_raised boolean;
  v_last_fence bigint;
BEGIN
  -- As is_alive does, in one statement with the look for the fences.
  SELECT fences IS NOT DISTINCT FROM ':SCHEMA.fences'::regclass::oid INTO v_has_raised
  FROM :SCHEMA.sessions WHERE id = p_session AND server_start = pg_postmaster_start_time() FOR KEY SHARE;
  IF NOT FOUND THEN RETURN :SCHEMA.answer(p_lane, p_number, '{"over": true}'); END IF;
  IF NOT v_has_raised THEN
    UPDATE :SCHEMA.sessions SET fences = ':SCHEMA.fences'::regclass WHERE id = p_session;
    PERFORM :SCHEMA.raise_fences(p_board);
  END IF;
  LOCK TABLE :SCHEMA.boards IN ROW SHARE MODE;
  SELECT paused, fence_base, limits, (SELECT last_value FROM :SCHEMA.fences) INTO v_paused, v_base, v_limits, v_last_fence
  FROM :SCHEMA.boards WHERE id = p_board;
  IF v_paused THEN RETURN :SCHEMA.answer(p_lane, p_number, '{"paused": true}'); END IF;
  IF v_limits <> ANY(p_limits) THEN RETURN :SCHEMA.answer(p_lane, p_number, '{"limits": true}'); END IF;
  IF v_base::numeric + v_last_fence >= 9007199253740991 THEN
    RETURN :SCHEMA.answer(p_lane, p_number, '{"outOfFences": true}');
  END IF;
  IF p_resources = '{}' AND p_keys = '{}' AND cardinality(p_lengths) = 1 THEN
    WITH granted AS (
      UPDATE :SCHEMA.jobs SET session = p_session, who = p_whos[1], revision = revision + 1, written_at = clock_timestamp(),
        due_at = '-infinity', life = p_lives
      WHERE id = ANY(p_ids) AND session IS NULL AND revision = p_revisions[1] AND due_when_ready IS NULL
      RETURNING id
    )
    SELECT array_agg(id) INTO v_granted FROM granted;
    IF v_granted IS NOT NULL THEN
      SELECT array_agg(v_base + nextval(':SCHEMA.fences')) INTO v_fences FROM generate_subscripts(v_granted, 1);
      PERFORM :SCHEMA.log_change(p_board, 'claimed', v_granted);
    END IF;
    IF cardinality(v_granted) = cardinality(p_ids) THEN
      -- Any of these fences is right for any of these jobs.
      RETURN :SCHEMA.answer(p_lane, p_number,
        json_build_object('granted', ARRAY(SELECT generate_series(0, cardinality(p_ids) - 1)), 'fences', v_fences));
    END IF;
    SELECT array_agg(array_position(p_ids, id) - 1) INTO v_places FROM unnest(v_granted) AS id;
    SELECT json_agg(json_build_array(a.at - 1, CASE WHEN j.id IS NULL THEN 'gone'
      WHEN j.session IS NULL AND j.due_when_ready IS NOT NULL THEN 'waits' ELSE 'changed' END)) INTO v_refused
    FROM unnest(p_ids) WITH ORDINALITY AS a(id, at) LEFT JOIN :SCHEMA.jobs j ON j.id = ANY(ARRAY[a.id])
    WHERE a.id <> ALL(coalesce(v_granted, '{}'));
    RETURN :SCHEMA.answer(p_lane, p_number,
      json_build_object('granted', v_places, 'fences', v_fences, 'refused', v_refused));
  END IF;
  IF p_resources <> '{}' THEN
    BEGIN
      PERFORM CASE WHEN alone THEN pg_advisory_xact_lock(:RESOURCE_CLASS, n)
        ELSE pg_advisory_xact_lock_shared(:RESOURCE_CLASS, n) END
      FROM (SELECT (r >> 32)::integer # p_board AS n, bool_or(e) AS alone FROM unnest(p_resources, p_exclusive) AS a(r, e)
        GROUP BY n ORDER BY n) AS sorted;
    EXCEPTION WHEN lock_not_available THEN
      SELECT coalesce(array_agg(n) FILTER (WHERE NOT CASE WHEN alone THEN pg_try_advisory_xact_lock(:RESOURCE_CLASS, n)
        ELSE pg_try_advisory_xact_lock_shared(:RESOURCE_CLASS, n) END), '{}') INTO v_unlockable
      FROM (SELECT (r >> 32)::integer # p_board AS n, bool_or(e) AS alone FROM unnest(p_resources, p_exclusive) AS a(r, e)
        GROUP BY n ORDER BY n) AS sorted;
    END;
  END IF;
  SELECT array_agg(id) FILTER (WHERE due_when_ready IS NOT NULL) INTO v_waiting FROM (
    SELECT id, due_when_ready FROM :SCHEMA.jobs WHERE id = ANY(p_ids) AND session IS NULL ORDER BY id FOR NO KEY UPDATE) AS locked;
  IF v_waiting IS NOT NULL THEN
    SELECT array_agg(at) INTO v_blocked FROM unnest(p_ids) WITH ORDINALITY AS a(id, at) WHERE id = ANY(v_waiting);
  END IF;
  FOR v_at IN SELECT DISTINCT asking FROM unnest(p_asking) AS asking
    JOIN :SCHEMA.jobs j ON j.id = ANY(ARRAY[p_ids[asking]]) AND j.session IS NULL AND j.revision = p_revisions[asking]
    WHERE asking <> ALL(v_blocked) ORDER BY asking
  LOOP
    SELECT a.name INTO v_name FROM unnest(p_asking, p_resources, p_names, p_exclusive) AS a(asking, resource, name, exclusive)
    WHERE a.asking = v_at AND ((a.resource >> 32)::integer # p_board = ANY(v_unlockable) OR EXISTS (
      SELECT FROM :SCHEMA.permits p JOIN :SCHEMA.sessions s ON s.id = p.session
      WHERE p.resource = ANY(ARRAY[a.resource]) AND p.board = p_board AND p.name = a.name
        AND (p.exclusive OR a.exclusive))) LIMIT 1;
    IF FOUND THEN
      v_blocked := v_blocked || v_at;
      v_taken_resources := v_taken_resources || json_build_array(v_at - 1, 'busy', v_name);
    ELSE
      INSERT INTO :SCHEMA.permits (board, resource, job, name, exclusive, session)
      SELECT p_board, a.resource, p_ids[v_at], a.name, a.exclusive, p_session
      FROM unnest(p_asking, p_resources, p_names, p_exclusive) AS a(asking, resource, name, exclusive) WHERE a.asking = v_at
      ON CONFLICT (board, resource, job, name) DO UPDATE SET exclusive = excluded.exclusive, session = excluded.session;
    END IF;
  END LOOP;
  IF p_keys <> '{}' THEN
    PERFORM :SCHEMA.lock_limits(p_board, p_keys, p_bursts, p_spacings);
    SELECT array_agg(w.wanting) INTO v_limitable FROM (SELECT DISTINCT wanting FROM unnest(p_wanting) AS wanting) AS w
    JOIN :SCHEMA.jobs j ON j.id = ANY(ARRAY[p_ids[w.wanting]]) AND j.session IS NULL AND j.revision = p_revisions[w.wanting]
    WHERE w.wanting <> ALL(v_blocked);
    v_taken := :SCHEMA.take_limits(p_board, p_ids, v_limitable, p_wanting, p_keys, p_slots, p_costs, p_bursts, p_spacings);
    SELECT coalesce(array_agg((value ->> 0)::integer + 1), '{}') INTO v_stopped FROM json_array_elements(v_taken -> 'limited');
    IF v_stopped && p_asking THEN
      DELETE FROM :SCHEMA.permits WHERE board = p_board AND job = ANY(ARRAY(SELECT p_ids[at] FROM unnest(v_stopped) AS at WHERE at = ANY(p_asking)));
    END IF;
    v_blocked := v_blocked || v_stopped;
  END IF;
  WITH requested AS (
    SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start
    FROM unnest(p_ids, p_revisions, p_whos, p_lengths) WITH ORDINALITY AS a(id, revision, who, length, at)
  ), granted AS (
    UPDATE :SCHEMA.jobs j SET session = p_session, who = a.who, revision = j.revision + 1, written_at = clock_timestamp(),
      due_at = '-infinity', life = substring(p_lives FROM a.start::integer FOR a.length)
    FROM requested a
    WHERE j.id = ANY(ARRAY[a.id]) AND j.session IS NULL AND j.revision = a.revision AND a.at <> ALL(v_blocked)
    RETURNING j.id, a.at - 1 AS at, v_base + nextval(':SCHEMA.fences') AS fence
  )
  SELECT array_agg(id), array_agg(at), array_agg(fence) INTO v_granted, v_places, v_fences FROM granted;
  IF v_granted IS NOT NULL THEN
    PERFORM :SCHEMA.log_change(p_board, 'claimed', v_granted, CASE WHEN p_asking <> '{}' OR p_wanting <> '{}' THEN
      ARRAY(SELECT (at + 1 = ANY(p_asking || p_wanting))::integer::smallint FROM unnest(v_places) WITH ORDINALITY AS g(at, number) ORDER BY number) END);
  END IF;
  IF v_granted IS NULL OR cardinality(v_granted) < cardinality(p_ids) THEN
    SELECT json_agg(json_build_array(a.at - 1,
      CASE WHEN j.id IS NULL THEN 'gone' WHEN a.id = ANY(v_waiting) THEN 'waits' ELSE 'changed' END)) INTO v_refused
    FROM unnest(p_ids) WITH ORDINALITY AS a(id, at) LEFT JOIN :SCHEMA.jobs j ON j.id = ANY(ARRAY[a.id])
    WHERE (v_granted IS NULL OR a.id <> ALL(v_granted)) AND (a.at <> ALL(v_blocked) OR a.id = ANY(v_waiting));
  END IF;
  RETURN :SCHEMA.answer(p_lane, p_number, json_build_object('granted', v_places, 'fences', v_fences, 'refused', v_refused,
    'busy', array_to_json(v_taken_resources), 'limited', v_taken -> 'limited', 'arrivals', v_taken -> 'arrivals'));
END $function$;
