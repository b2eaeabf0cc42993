-- Functions that post jobs.
--
-- Settings of functions that process a batch (enable_... and jit) make plans find rows by their keys. Postgres plans for the
-- table as it was when its statistics were last collected, and a board is often empty. A plan that reads a whole board looks
-- cheap then, but must not be used for a board that has grown. The first settings prevent sequential scans of the table. A
-- scan of a whole index is prevented because no query gains from the order of an index:
--
-- - Joins compare with id = ANY(ARRAY[a.id]), which finds each row by its key without sorting, in the order of the other
--   side. With id = a.id Postgres may read all ids of the table in order, and search for each in the group.
-- - coalesce(session, 0) prevents use of the index on sessions, which contains the claimed jobs of all boards.
--
-- A query that needs a disabled plan, such as a read of a sequence, seems so expensive that Postgres compiles it first. That
-- took a tenth of a second for the first claim of each session, so JIT compilation is disabled, too.
--
-- plan_cache_mode lets each statement be planned once. Otherwise Postgres plans it anew in each call with a small group, because it estimates arrays of ten
-- elements where it does not know the array: that took more time than the execution.

-- Posts jobs together. A job is not posted if its key is taken, if it depends on a job that is not on the board, or if its batch refuses
-- it.
--
-- p_bodies: the postings, joined; p_lengths: the length of each; then arrays with one element for each job: uuid, name, priority (with the queue
-- after a space unless the job is in the default one), digest of
-- the key or null, onOwnerLost or null, delay in milliseconds or null. Arrays with one element for each dependency: p_dependents (the index
-- of the job, from 1), p_after (the number of the other job) and p_settled (whether it is met also by the end in the trash). p_windows: for
-- each job the window of its key in milliseconds, or null. p_batches: for each job the uuid of its batch, or null, and p_members: the uuid
-- of the open job of that batch on whose behalf it is posted, or null; both are empty where no job is in a batch.
--
-- Returns {ids, taken, gone, barred}: the numbers of the jobs; for each job that was not posted because of its key, by its index: the uuid
-- and the number of the job that has the key, and true if that job has left the board and its window is not over; for each that depends on
-- jobs which are not on the board, by its index, the numbers of these; and for each that its batch refuses, by its index, why: [unknown],
-- [cancelled, reason], [sealed] or [duplicate].
--
-- Rank 2 is the rank of the default priority, NORMAL.
--
-- An array of keys, owners lost, delays, windows or priorities may be empty where no job has one, or all have the default priority. A group of plain jobs
-- (without keys, dependencies and batches) can only be posted: it takes the plain path, which is one insertion.
CREATE OR REPLACE FUNCTION :SCHEMA.post(
  p_lane uuid, p_number bigint, p_board integer, p_bodies bytea, p_lengths integer[], p_uuids text[],
  p_names text[], p_priorities text[], p_keys bytea[], p_owner_lost text[], p_delays float8[], p_dependents integer[],
  p_after bigint[], p_settled boolean[], p_windows float8[], p_batches text[], p_members text[])
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET plan_cache_mode TO force_generic_plan
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_ids bigint[];
  v_posted bigint[];
  v_ranks smallint[];
  v_dues float8[];
  v_taken json;
  v_waiting bigint[];
  v_missing bigint[];
  v_refused bigint[] := '{}';
  v_gone json;
  v_in_window bigint[];
  v_batches bigint[];
  v_members bigint[];
  v_barred bigint[] := '{}';
  v_reasons json[] := '{}';
  v_twice bigint[];
  v_now timestamptz;
  v_queues text[];
BEGIN
  IF p_priorities <> '{}' AND array_to_string(p_priorities, '') LIKE '% %' THEN
    v_queues := ARRAY(SELECT :SCHEMA.queue_in(place) FROM unnest(p_priorities) WITH ORDINALITY AS a(place, at) ORDER BY at);
    p_priorities := ARRAY(SELECT :SCHEMA.priority_in(place) FROM unnest(p_priorities) WITH ORDINALITY AS a(place, at) ORDER BY at);
  END IF;
  SELECT array_agg(nextval(':SCHEMA.job_ids')) INTO v_ids FROM generate_subscripts(p_lengths, 1);
  IF num_nonnulls(VARIADIC p_keys) = 0 AND p_after = '{}' AND p_batches = '{}' THEN
    v_now := clock_timestamp();
    INSERT INTO :SCHEMA.jobs (id, board, uuid, name, priority, on_owner_lost, body, posted_at, written_at, due_at, queue)
    SELECT id, p_board, uuid, name, coalesce(priority, 'NORMAL'), owner_lost, substring(p_bodies FROM start::integer FOR length), v_now, v_now,
      coalesce(v_now + delay * interval '1 ms', '-infinity'), queue
    FROM (SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start
      FROM unnest(v_ids, p_lengths, p_uuids, p_names, p_priorities, p_owner_lost, p_delays, v_queues)
        WITH ORDINALITY AS a(id, length, uuid, name, priority, owner_lost, delay, queue, at)) AS requested;
    IF 'NORMAL' <> ANY(p_priorities) OR num_nonnulls(VARIADIC p_delays) > 0 THEN
      SELECT array_agg(rank ORDER BY id), array_agg(:SCHEMA.milliseconds(due_at) ORDER BY id) INTO v_ranks, v_dues
      FROM :SCHEMA.jobs WHERE id = ANY(v_ids);
    END IF;
    IF v_queues IS NULL THEN PERFORM :SCHEMA.log_change(p_board, 'posted', v_ids, v_ranks, v_dues);
    ELSE PERFORM :SCHEMA.log_placed(p_board, 'posted', v_ids, v_ranks, v_dues); END IF;
    RETURN :SCHEMA.answer(p_lane, p_number, json_build_object('ids', v_ids));
  END IF;
  IF p_batches <> '{}' THEN
    SELECT array_agg(b.number ORDER BY at) INTO v_batches FROM unnest(p_batches) WITH ORDINALITY AS a(uuid, at)
    LEFT JOIN :SCHEMA.batches b ON b.uuid = ANY(ARRAY[a.uuid]) AND b.board = p_board;
    SELECT array_agg(j.id ORDER BY at) INTO v_members FROM unnest(v_batches, p_members) WITH ORDINALITY AS a(batch, uuid, at)
    LEFT JOIN :SCHEMA.jobs j ON j.batch = ANY(ARRAY[a.batch]) AND j.uuid = ANY(ARRAY[a.uuid]);
  END IF;
  -- The jobs on whose behalf others are posted must not end before these are posted, either.
  IF p_after <> '{}' OR num_nonnulls(VARIADIC v_members) > 0 THEN
    v_missing := :SCHEMA.lock_dependencies(p_board, p_after || array_remove(v_members, NULL));
  END IF;
  IF p_after <> '{}' THEN
    SELECT array_agg(DISTINCT at) INTO v_waiting FROM unnest(p_dependents) AS at;
  END IF;
  IF v_missing IS NOT NULL THEN
    SELECT json_object_agg(at - 1, others), coalesce(array_agg(at), '{}') INTO v_gone, v_refused FROM (
      SELECT at, json_agg(other) AS others FROM unnest(p_dependents, p_after) AS a(at, other) WHERE other = ANY(v_missing) GROUP BY at
    ) AS refused;
  END IF;
  IF p_batches <> '{}' THEN
    SELECT coalesce(array_agg(at), '{}'), coalesce(array_agg(why), '{}') INTO v_barred, v_reasons
    FROM :SCHEMA.barred_posts(p_batches, v_batches, v_members, v_missing, p_uuids);
    v_refused := v_refused || v_barred;
  END IF;
  WITH requested AS (
    SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start, clock_timestamp() AS now, at = ANY(v_waiting) AS waits
    FROM unnest(v_ids, p_lengths, p_uuids, p_names, p_priorities, p_keys, p_owner_lost, p_delays, v_batches, v_queues)
      WITH ORDINALITY AS a(id, length, uuid, name, priority, key, owner_lost, delay, batch, queue, at)
  ), inserted AS (
    INSERT INTO :SCHEMA.jobs (id, board, uuid, name, priority, key, on_owner_lost, body, posted_at, written_at, due_at, due_when_ready, batch, queue)
    SELECT id, p_board, uuid, name, coalesce(priority, 'NORMAL'), key, owner_lost, substring(p_bodies FROM start::integer FOR length), now, now,
      CASE WHEN waits THEN 'infinity' ELSE coalesce(now + delay * interval '1 ms', '-infinity') END,
      CASE WHEN waits THEN coalesce(now + delay * interval '1 ms', '-infinity') END, batch, queue
    FROM requested WHERE at <> ALL(v_refused) ORDER BY key, batch, uuid, id
    ON CONFLICT DO NOTHING RETURNING id, rank, due_at
  )
  SELECT array_agg(id ORDER BY id), CASE WHEN bool_or(rank <> 2) THEN array_agg(rank ORDER BY id) END,
    CASE WHEN bool_or(due_at > '-infinity') THEN array_agg(:SCHEMA.milliseconds(due_at) ORDER BY id) END
  INTO v_posted, v_ranks, v_dues FROM inserted;
  IF v_posted IS NOT NULL AND num_nonnulls(VARIADIC p_keys) > 0 THEN
    SELECT :SCHEMA.take_keys(p_board, array_agg(id), array_agg(key), array_agg(uuid), array_agg(length)) INTO v_in_window
    FROM unnest(v_ids, p_keys, p_uuids, p_windows) AS a(id, key, uuid, length) WHERE id = ANY(v_posted) AND key IS NOT NULL;
  END IF;
  IF v_in_window IS NOT NULL THEN
    DELETE FROM :SCHEMA.jobs WHERE id = ANY(v_in_window);
    SELECT array_agg(id ORDER BY id), array_agg(rank ORDER BY id), array_agg(:SCHEMA.milliseconds(due_at) ORDER BY id)
    INTO v_posted, v_ranks, v_dues FROM :SCHEMA.jobs WHERE id = ANY(v_posted);
  END IF;
  IF v_waiting IS NOT NULL THEN
    INSERT INTO :SCHEMA.dependencies (board, job, waits_for, settled)
    SELECT p_board, v_ids[at], other, settled FROM unnest(p_dependents, p_after, p_settled) AS a(at, other, settled)
    WHERE v_ids[at] = ANY(v_posted) ON CONFLICT (waits_for, job) DO NOTHING;
  END IF;
  IF v_batches IS NOT NULL THEN
    INSERT INTO :SCHEMA.batch_posts (batch, jobs)
    SELECT batch, count(*) FROM unnest(v_ids, v_batches) AS a(id, batch) WHERE id = ANY(v_posted) AND batch IS NOT NULL GROUP BY batch;
  END IF;
  IF v_posted IS NOT NULL AND v_queues IS NULL THEN PERFORM :SCHEMA.log_change(p_board, 'posted', v_posted, v_ranks, v_dues);
  ELSIF v_posted IS NOT NULL THEN PERFORM :SCHEMA.log_placed(p_board, 'posted', v_posted, v_ranks, v_dues); END IF;
  IF v_posted IS NULL OR cardinality(v_posted) < cardinality(v_ids) THEN
    -- Another job of the batch had the same uuid, from these or from another transaction.
    SELECT array_agg(at) INTO v_twice FROM unnest(v_ids, p_keys, v_batches, p_uuids) WITH ORDINALITY AS a(id, key, batch, uuid, at)
    WHERE a.id <> ALL(coalesce(v_posted, '{}')) AND a.at <> ALL(v_refused) AND (a.key IS NULL OR EXISTS (
      SELECT FROM :SCHEMA.jobs j WHERE j.batch = ANY(ARRAY[a.batch]) AND j.uuid = ANY(ARRAY[a.uuid])));
    IF EXISTS (SELECT FROM unnest(v_twice) AS at WHERE v_batches[at] IS NULL) THEN
      RAISE unique_violation USING MESSAGE = 'the number of a job is taken: the sequence job_ids was set back';
    END IF;
    v_barred := v_barred || v_twice;
    v_reasons := v_reasons || array_fill(json_build_array('duplicate'), ARRAY[coalesce(cardinality(v_twice), 0)]);
    v_refused := v_refused || v_twice;
    SELECT json_object_agg(a.at - 1, CASE WHEN j.id IS NULL AND w.job IS NOT NULL THEN json_build_array(w.uuid, w.job, true)
      ELSE json_build_array(j.uuid, j.id) END) INTO v_taken
    FROM unnest(v_ids, p_keys) WITH ORDINALITY AS a(id, key, at)
    LEFT JOIN :SCHEMA.jobs j ON j.board = p_board AND j.key = ANY(ARRAY[a.key])
    LEFT JOIN :SCHEMA.key_windows w ON w.board = p_board AND w.key = ANY(ARRAY[a.key]) AND w.until > clock_timestamp()
    WHERE a.id <> ALL(coalesce(v_posted, '{}')) AND a.at <> ALL(v_refused);
  END IF;
  RETURN :SCHEMA.answer(p_lane, p_number, json_build_object('ids', v_ids, 'taken', v_taken, 'gone', v_gone,
    'barred', (SELECT json_object_agg(at - 1, why) FROM unnest(v_barred, v_reasons) AS b(at, why))));
END $function$;

-- Returns what identifies the database of this schema: the name of the database, and the time at which the tables of the schema were created. A copy of the
-- database under the same name has the same identity, and so has the database of a standby server that takes over.
CREATE OR REPLACE FUNCTION :SCHEMA.database_identity() RETURNS text LANGUAGE plpgsql STABLE
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  RETURN current_database() || ' ' || coalesce(
    (SELECT extract(epoch FROM min(applied_at))::numeric(20, 6)::text FROM :SCHEMA.migrations WHERE part = 'board'), '');
END $function$;

-- Posts jobs as the function post does, in a transaction of the caller. Returns null, and posts nothing, if the identity of this database is not p_database: a
-- client of another database would post the jobs on the board of the same schema there.
--
-- The comparison is here and not in the statement of the client, because the server plans each statement of a client anew, and those of a function once for a
-- connection. The number of the request is always 1: each post of a caller has a lane of its own.
CREATE OR REPLACE FUNCTION :SCHEMA.post_in_transaction(
  p_database text, p_lane uuid, p_board integer, p_bodies bytea, p_lengths integer[], p_uuids text[],
  p_names text[], p_priorities text[], p_keys bytea[], p_owner_lost text[], p_delays float8[], p_dependents integer[],
  p_after bigint[], p_settled boolean[], p_windows float8[], p_batches text[], p_members text[])
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  IF p_database IS DISTINCT FROM :SCHEMA.database_identity() THEN RETURN NULL; END IF;
  RETURN :SCHEMA.post(p_lane, 1, p_board, p_bodies, p_lengths, p_uuids, p_names, p_priorities, p_keys, p_owner_lost, p_delays, p_dependents,
    p_after, p_settled, p_windows, p_batches, p_members);
END $function$;
