/**
 * What happens on a board, each as a function of the database: one statement, and so one round trip and one transaction,
 * which nobody can leave open halfway. Within, every statement sees what was committed before *it*: the default isolation.
 *
 * Each takes many elements and answers for each. What one of them may not have is left out of the batch, and not raised:
 * an error would take the neighbours along.
 *
 * **Order of locks**, the same everywhere, so that nobody waits in a circle: the session's row, the gate, resources by
 * number, jobs by id. A session's row is held FOR KEY SHARE: it cannot be deleted meanwhile, and can be heartbeaten.
 */
import { advisoryClass } from '../../postgres/index.ts'
import { rank } from '../priority.ts'
import { sectionFunctions } from './section-functions.ts'

/** First numbers of our advisory locks; a session's id, or a board's, is the second. */
export function lockClasses(schema: string): { readonly session: number; readonly gate: number } {
  return { session: advisoryClass(`session ${schema}`), gate: advisoryClass(`gate ${schema}`) }
}

/** Of the notifications of one board, by its number. */
export function channelOf(schema: string, board: number | string): string {
  return `jobboard_${(advisoryClass(schema) >>> 0).toString(36)}_${board}`
}

/**
 * A plan is made for the table as it was when it was last looked at, perhaps empty: a board is, again and again. Rows are
 * always found by their keys: a plan that reads all of a board, which looks cheap then, must not be there when it has grown.
 * These settings keep away from the table. From reading a whole index keeps that nothing gains by its order:
 *
 * - What is joined is compared as `id = ANY(ARRAY[a.id])`, which finds a row by its key and sorts nothing, and is ordered by
 *   the other side. By `id = a.id` all ids of the table may be read, in order, and each be looked for in the batch.
 * - `coalesce(session, 0)` keeps the index on sessions out of it, which holds what is claimed on all boards.
 */
const BY_KEYS =
  'SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off'

/** Of most jobs: it is not told. */
const USUAL_RANK = rank('NORMAL')

export function functions(schema: string): string {
  return [helpers, sessions, posting, claiming, settling, ending, trash, asking, sectionFunctions]
    .map((part) => part(schema).replaceAll('@', schema))
    .join('\n')
}

/** What every function ends with: others are told, and the answer is kept until the next one. */
function helpers(schema: string): string {
  return `
CREATE FUNCTION @.milliseconds(p_at timestamptz) RETURNS float8 LANGUAGE sql IMMUTABLE AS $function$
  SELECT CASE WHEN p_at = '-infinity' THEN 0 ELSE extract(epoch FROM p_at)::float8 * 1000 END
$function$;

CREATE FUNCTION @.tell(p_board integer, p_kind text, p_jobs bigint[], p_ranks smallint[] DEFAULT NULL,
  p_dues float8[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $function$
BEGIN
  INSERT INTO @.changes (board, kind, jobs, ranks, dues) VALUES (p_board, p_kind, p_jobs, p_ranks, p_dues);
  PERFORM pg_notify('${channelOf(schema, '')}' || p_board, '');
END $function$;

CREATE FUNCTION @.answer(p_lane uuid, p_number bigint, p_answer json) RETURNS json LANGUAGE plpgsql AS $function$
BEGIN
  IF p_lane IS NULL THEN RETURN p_answer; END IF;
  INSERT INTO @.receipts AS r (lane, number, answer) VALUES (p_lane, p_number, p_answer)
  ON CONFLICT (lane) DO UPDATE SET number = excluded.number, answer = excluded.answer, at = clock_timestamp()
    WHERE r.number < excluded.number;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'request % was given up', p_number USING ERRCODE = 'P0J01';
  END IF;
  RETURN p_answer;
END $function$;

CREATE FUNCTION @.find_out(p_lane uuid, p_number bigint) RETURNS json LANGUAGE plpgsql AS $function$
DECLARE v_answer json;
BEGIN
  INSERT INTO @.receipts AS r (lane, number) VALUES (p_lane, p_number)
  ON CONFLICT (lane) DO UPDATE SET number = excluded.number, answer = NULL, at = clock_timestamp()
    WHERE r.number < excluded.number;
  IF NOT FOUND THEN SELECT answer INTO v_answer FROM @.receipts WHERE lane = p_lane AND number = p_number; END IF;
  RETURN v_answer;
END $function$;

CREATE FUNCTION @.lives(p_session integer) RETURNS boolean LANGUAGE plpgsql AS $function$
BEGIN
  PERFORM FROM @.sessions WHERE id = p_session AND server_start = pg_postmaster_start_time() FOR KEY SHARE;
  RETURN FOUND;
END $function$;

CREATE FUNCTION @.changes_since(p_board integer, p_snapshot pg_snapshot)
RETURNS TABLE (snapshot text, at float8, told json) LANGUAGE sql STABLE ${BY_KEYS} AS $function$
  SELECT pg_current_snapshot()::text, extract(epoch FROM clock_timestamp())::float8 * 1000, (
    SELECT json_agg(json_build_array(c.kind, c.jobs, c.ranks, c.dues) ORDER BY c.number) FROM (
      SELECT * FROM @.changes WHERE board = p_board AND transaction >= pg_snapshot_xmax(p_snapshot)
      UNION ALL
      SELECT * FROM @.changes WHERE board = p_board AND transaction = ANY(ARRAY(SELECT pg_snapshot_xip(p_snapshot)))
    ) c)
$function$;`
}

/** A session lives while its lock is held and its heart beats. */
function sessions(schema: string): string {
  const { session } = lockClasses(schema)
  return `
CREATE FUNCTION @.open_session(p_board integer, p_who text, p_ttl float8) RETURNS integer LANGUAGE plpgsql AS $function$
DECLARE v_id integer := nextval('@.session_ids');
BEGIN
  PERFORM pg_advisory_lock(${session}, v_id);
  INSERT INTO @.sessions (id, board, who, backend, backend_start, server_start, ttl, heartbeat_at)
  SELECT v_id, p_board, p_who, pid, backend_start, pg_postmaster_start_time(), p_ttl * interval '1 ms', clock_timestamp()
  FROM pg_stat_activity WHERE pid = pg_backend_pid();
  RETURN v_id;
END $function$;

CREATE FUNCTION @.heartbeat(p_session integer) RETURNS json LANGUAGE plpgsql AS $function$
DECLARE v_board integer;
BEGIN
  UPDATE @.sessions SET heartbeat_at = clock_timestamp()
  WHERE id = p_session AND backend = pg_backend_pid() AND server_start = pg_postmaster_start_time() RETURNING board INTO v_board;
  IF NOT FOUND OR NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objsubid = 2
    AND classid::bigint = ${session >>> 0} AND objid::bigint = p_session) THEN RETURN NULL; END IF;
  RETURN (SELECT coalesce(json_agg(id), '[]'::json) FROM @.sessions
    WHERE board = v_board AND id <> p_session AND heartbeat_at + ttl < clock_timestamp());
END $function$;

CREATE FUNCTION @.end_session(p_session integer) RETURNS void LANGUAGE plpgsql ${BY_KEYS} AS $function$
DECLARE
  v_session @.sessions;
  v_trashed bigint[];
  v_freed bigint[];
BEGIN
  DELETE FROM @.sessions WHERE id = p_session RETURNING * INTO v_session;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM FROM @.jobs WHERE session = p_session ORDER BY id FOR UPDATE;
  WITH gone AS (
    DELETE FROM @.jobs WHERE session = p_session AND on_owner_lost = 'fail' RETURNING *
  ), kept AS (
    INSERT INTO @.trash (id, board, uuid, name, body, life, who, reason)
    SELECT id, board, uuid, name, body, life, who, 'its owner ' || who || ' was lost' FROM gone RETURNING id
  )
  SELECT array_agg(id ORDER BY id) INTO v_trashed FROM kept;
  WITH freed AS (
    UPDATE @.jobs SET session = NULL, who = NULL WHERE session = p_session RETURNING id
  )
  SELECT array_agg(id ORDER BY id) INTO v_freed FROM freed;
  DELETE FROM @.permits WHERE job = ANY(v_freed || v_trashed) AND board = v_session.board;
  DELETE FROM @.entities WHERE board = v_session.board AND session = p_session;
  IF v_trashed IS NOT NULL THEN PERFORM @.tell(v_session.board, 'trashed', v_trashed); END IF;
  IF v_freed IS NOT NULL THEN PERFORM @.tell(v_session.board, 'freed', v_freed); END IF;
END $function$;

CREATE FUNCTION @.take_over(p_session integer) RETURNS text LANGUAGE plpgsql AS $function$
DECLARE v_session @.sessions;
BEGIN
  SELECT * INTO v_session FROM @.sessions WHERE id = p_session FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 'gone'; END IF;
  IF v_session.heartbeat_at + v_session.ttl >= clock_timestamp() THEN RETURN 'alive'; END IF;
  IF NOT pg_try_advisory_xact_lock(${session}, p_session) THEN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid = v_session.backend AND backend_start = v_session.backend_start;
    RETURN 'hung';
  END IF;
  PERFORM @.end_session(p_session);
  RETURN 'ended';
END $function$;`
}

function posting(): string {
  return `
CREATE FUNCTION @.post(p_lane uuid, p_number bigint, p_board integer, p_bodies bytea, p_lengths integer[], p_uuids text[],
  p_names text[], p_priorities text[], p_keys bytea[], p_owner_lost text[], p_delays float8[])
RETURNS json LANGUAGE plpgsql ${BY_KEYS} AS $function$
DECLARE
  v_ids bigint[];
  v_made bigint[];
  v_ranks smallint[];
  v_dues float8[];
  v_taken json;
BEGIN
  SELECT array_agg(nextval('@.job_ids')) INTO v_ids FROM generate_subscripts(p_lengths, 1);
  WITH asked AS (
    SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start, clock_timestamp() AS now
    FROM unnest(v_ids, p_lengths, p_uuids, p_names, p_priorities, p_keys, p_owner_lost, p_delays)
      WITH ORDINALITY AS a(id, length, uuid, name, priority, key, owner_lost, delay, at)
  ), made AS (
    INSERT INTO @.jobs (id, board, uuid, name, priority, key, on_owner_lost, body, posted_at, written_at, due_at)
    SELECT id, p_board, uuid, name, priority, key, owner_lost, substring(p_bodies FROM start::integer FOR length), now, now,
      coalesce(now + delay * interval '1 ms', '-infinity')
    FROM asked ORDER BY key, id
    ON CONFLICT (board, key) WHERE key IS NOT NULL DO NOTHING RETURNING id, rank, due_at
  )
  SELECT array_agg(id ORDER BY id), CASE WHEN bool_or(rank <> ${USUAL_RANK}) THEN array_agg(rank ORDER BY id) END,
    CASE WHEN bool_or(due_at > '-infinity') THEN array_agg(@.milliseconds(due_at) ORDER BY id) END
  INTO v_made, v_ranks, v_dues FROM made;
  IF v_made IS NOT NULL THEN PERFORM @.tell(p_board, 'posted', v_made, v_ranks, v_dues); END IF;
  IF v_made IS NULL OR cardinality(v_made) < cardinality(v_ids) THEN
    SELECT json_object_agg(a.at - 1, json_build_array(j.uuid, j.id)) INTO v_taken
    FROM unnest(v_ids, p_keys) WITH ORDINALITY AS a(id, key, at)
    LEFT JOIN @.jobs j ON j.board = p_board AND j.key = ANY(ARRAY[a.key])
    WHERE a.id <> ALL(coalesce(v_made, '{}'));
  END IF;
  RETURN @.answer(p_lane, p_number, json_build_object('ids', v_ids, 'taken', v_taken));
END $function$;`
}

function claiming(schema: string): string {
  const { gate } = lockClasses(schema)
  return `
CREATE FUNCTION @.claim(p_lane uuid, p_number bigint, p_board integer, p_session integer, p_ids bigint[], p_revisions integer[],
  p_whos text[], p_lives bytea, p_lengths integer[], p_asking integer[], p_resources bigint[], p_names text[],
  p_exclusive boolean[]) RETURNS json LANGUAGE plpgsql ${BY_KEYS} AS $function$
DECLARE
  v_refused json;
  v_busy json[] := '{}';
  v_blocked integer[] := '{}';
  v_at integer;
  v_name text;
  v_granted bigint[];
  v_places integer[];
  v_fences bigint[];
BEGIN
  IF NOT @.lives(p_session) THEN RETURN @.answer(p_lane, p_number, '{"over": true}'); END IF;
  PERFORM pg_advisory_xact_lock_shared(${gate}, p_board);
  IF (SELECT paused FROM @.boards WHERE id = p_board) THEN RETURN @.answer(p_lane, p_number, '{"paused": true}'); END IF;
  IF p_resources <> '{}' THEN
    PERFORM CASE WHEN alone THEN pg_advisory_xact_lock(r) ELSE pg_advisory_xact_lock_shared(r) END
    FROM (SELECT r, bool_or(e) AS alone FROM unnest(p_resources, p_exclusive) AS a(r, e) GROUP BY r ORDER BY r) AS sorted;
  END IF;
  PERFORM FROM @.jobs WHERE id = ANY(p_ids) AND session IS NULL ORDER BY id FOR NO KEY UPDATE;
  FOR v_at IN SELECT DISTINCT asking FROM unnest(p_asking) AS asking
    JOIN @.jobs j ON j.id = ANY(ARRAY[p_ids[asking]]) AND j.session IS NULL AND j.revision = p_revisions[asking]
    ORDER BY asking
  LOOP
    SELECT a.name INTO v_name FROM unnest(p_asking, p_resources, p_names, p_exclusive) AS a(asking, resource, name, exclusive)
    WHERE a.asking = v_at AND EXISTS (
      SELECT FROM @.permits p JOIN @.sessions s ON s.id = p.session
      WHERE p.resource = ANY(ARRAY[a.resource]) AND p.board = p_board AND p.name = a.name
        AND (p.exclusive OR a.exclusive)) LIMIT 1;
    IF FOUND THEN
      v_blocked := v_blocked || v_at;
      v_busy := v_busy || json_build_array(v_at - 1, 'busy', v_name);
    ELSE
      INSERT INTO @.permits (board, resource, job, name, exclusive, session)
      SELECT p_board, a.resource, p_ids[v_at], a.name, a.exclusive, p_session
      FROM unnest(p_asking, p_resources, p_names, p_exclusive) AS a(asking, resource, name, exclusive) WHERE a.asking = v_at
      ON CONFLICT (board, resource, job, name) DO UPDATE SET exclusive = excluded.exclusive, session = excluded.session;
    END IF;
  END LOOP;
  WITH asked AS (
    SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start
    FROM unnest(p_ids, p_revisions, p_whos, p_lengths) WITH ORDINALITY AS a(id, revision, who, length, at)
  ), granted AS (
    UPDATE @.jobs j SET session = p_session, who = a.who, revision = j.revision + 1, written_at = clock_timestamp(),
      due_at = '-infinity', life = substring(p_lives FROM a.start::integer FOR a.length)
    FROM asked a
    WHERE j.id = ANY(ARRAY[a.id]) AND j.session IS NULL AND j.revision = a.revision AND a.at <> ALL(v_blocked)
    RETURNING j.id, a.at - 1 AS at, nextval('@.fences') AS fence
  )
  SELECT array_agg(id), array_agg(at), array_agg(fence) INTO v_granted, v_places, v_fences FROM granted;
  IF v_granted IS NOT NULL THEN PERFORM @.tell(p_board, 'claimed', v_granted); END IF;
  IF v_granted IS NULL OR cardinality(v_granted) < cardinality(p_ids) THEN
    SELECT json_agg(json_build_array(a.at - 1, CASE WHEN j.id IS NULL THEN 'gone' ELSE 'changed' END)) INTO v_refused
    FROM unnest(p_ids) WITH ORDINALITY AS a(id, at) LEFT JOIN @.jobs j ON j.id = ANY(ARRAY[a.id])
    WHERE (v_granted IS NULL OR a.id <> ALL(v_granted)) AND a.at <> ALL(v_blocked);
  END IF;
  RETURN @.answer(p_lane, p_number, json_build_object('granted', v_places, 'fences', v_fences, 'refused', v_refused,
    'busy', array_to_json(v_busy)));
END $function$;`
}

/** The claims of one session end, each in the way that is asked for. */
function settling(): string {
  return `
CREATE FUNCTION @.settle(p_lane uuid, p_number bigint, p_board integer, p_session integer, p_ids bigint[], p_revisions integer[],
  p_kinds text[], p_lives bytea, p_lengths integer[], p_delays float8[], p_whos text[], p_reasons text[], p_failures bytea[],
  p_holding boolean)
RETURNS json LANGUAGE plpgsql ${BY_KEYS} AS $function$
DECLARE
  v_consumed bigint[];
  v_abandoned bigint[];
  v_trashed bigint[];
  v_done bigint[];
BEGIN
  IF NOT @.lives(p_session) THEN RETURN @.answer(p_lane, p_number, '{"over": true}'); END IF;
  PERFORM FROM @.jobs WHERE id = ANY(p_ids) AND coalesce(session, 0) = p_session ORDER BY id FOR UPDATE;
  IF 'consume' = ANY(p_kinds) THEN
    WITH consumed AS (
      DELETE FROM @.jobs j USING unnest(p_ids, p_revisions, p_kinds) AS a(id, revision, kind)
      WHERE j.id = ANY(ARRAY[a.id]) AND coalesce(j.session, 0) = p_session AND j.revision = a.revision AND a.kind = 'consume'
      RETURNING j.id
    )
    SELECT array_agg(id) INTO v_consumed FROM consumed;
    IF v_consumed IS NOT NULL THEN PERFORM @.tell(p_board, 'consumed', v_consumed); END IF;
  END IF;
  IF 'abandon' = ANY(p_kinds) THEN
    WITH asked AS (
      SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start, clock_timestamp() AS now
      FROM unnest(p_ids, p_revisions, p_kinds, p_lengths, p_delays)
        WITH ORDINALITY AS a(id, revision, kind, length, delay, at)
    ), abandoned AS (
      UPDATE @.jobs j SET session = NULL, who = NULL, revision = j.revision + 1, written_at = a.now,
        due_at = CASE WHEN a.delay IS NULL OR j.cancelled_by IS NOT NULL THEN '-infinity'
          ELSE a.now + a.delay * interval '1 ms' END,
        life = substring(p_lives FROM a.start::integer FOR a.length)
      FROM asked a
      WHERE j.id = ANY(ARRAY[a.id]) AND coalesce(j.session, 0) = p_session AND j.revision = a.revision AND a.kind = 'abandon'
      RETURNING j.id
    )
    SELECT array_agg(id) INTO v_abandoned FROM abandoned;
    IF v_abandoned IS NOT NULL THEN PERFORM @.tell(p_board, 'abandoned', v_abandoned); END IF;
  END IF;
  IF 'trash' = ANY(p_kinds) THEN
    WITH asked AS (
      SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start
      FROM unnest(p_ids, p_revisions, p_kinds, p_lengths, p_whos, p_reasons, p_failures)
        WITH ORDINALITY AS a(id, revision, kind, length, who, reason, failure, at)
    ), gone AS (
      DELETE FROM @.jobs j USING asked a
      WHERE j.id = ANY(ARRAY[a.id]) AND coalesce(j.session, 0) = p_session AND j.revision = a.revision AND a.kind = 'trash'
      RETURNING j.*, a.start, a.length, a.who AS by_whom, a.reason, a.failure
    ), trashed AS (
      INSERT INTO @.trash (id, board, uuid, name, body, life, who, reason, failure)
      SELECT id, board, uuid, name, body, substring(p_lives FROM start::integer FOR length), by_whom, reason, failure FROM gone
      RETURNING id
    )
    SELECT array_agg(id) INTO v_trashed FROM trashed;
    IF v_trashed IS NOT NULL THEN PERFORM @.tell(p_board, 'trashed', v_trashed); END IF;
  END IF;
  v_done := v_consumed || v_abandoned || v_trashed;
  IF p_holding THEN
    DELETE FROM @.permits WHERE job = ANY(v_done) AND board = p_board;
  END IF;
  IF cardinality(v_done) = cardinality(p_ids) THEN RETURN @.answer(p_lane, p_number, '{}'); END IF;
  RETURN @.answer(p_lane, p_number, json_build_object('lost', (
    SELECT json_agg(at - 1) FROM unnest(p_ids) WITH ORDINALITY AS a(id, at) WHERE v_done IS NULL OR id <> ALL(v_done))));
END $function$;`
}

/** Of a job that nobody owns. */
function ending(): string {
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

function trash(): string {
  return `
CREATE FUNCTION @.restore(p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_life bytea, p_priority text,
  p_key bytea, p_owner_lost text) RETURNS json LANGUAGE plpgsql AS $function$
DECLARE
  v_entry @.trash;
  v_id bigint;
  v_rank smallint;
BEGIN
  SELECT * INTO v_entry FROM @.trash WHERE board = p_board AND id = p_id FOR UPDATE;
  IF NOT FOUND THEN RETURN @.answer(p_lane, p_number, '"gone"'); END IF;
  INSERT INTO @.jobs (board, uuid, name, priority, key, on_owner_lost, body, life)
  VALUES (p_board, v_entry.uuid, v_entry.name, p_priority, p_key, p_owner_lost, v_entry.body, p_life)
  ON CONFLICT (board, key) WHERE key IS NOT NULL DO NOTHING RETURNING id, rank INTO v_id, v_rank;
  IF v_id IS NULL THEN RETURN @.answer(p_lane, p_number, '"taken"'); END IF;
  DELETE FROM @.trash WHERE board = p_board AND id = p_id;
  PERFORM @.tell(p_board, 'posted', ARRAY[v_id], ARRAY[v_rank]);
  RETURN @.answer(p_lane, p_number, '"done"');
END $function$;

CREATE FUNCTION @.purge(p_lane uuid, p_number bigint, p_board integer, p_id bigint) RETURNS json LANGUAGE plpgsql AS $function$
BEGIN
  DELETE FROM @.trash WHERE board = p_board AND id = p_id;
  RETURN @.answer(p_lane, p_number, CASE WHEN FOUND THEN '"done"'::json ELSE '"gone"' END);
END $function$;`
}

/** What outlives whoever asked for it. */
function asking(schema: string): string {
  const { gate } = lockClasses(schema)
  return `
CREATE FUNCTION @.cancel(p_lane uuid, p_number bigint, p_board integer, p_id bigint, p_who text, p_reason text)
RETURNS json LANGUAGE plpgsql AS $function$
BEGIN
  UPDATE @.jobs SET cancelled_by = p_who, cancel_reason = p_reason, due_at = '-infinity'
  WHERE id = p_id AND cancelled_by IS NULL;
  IF FOUND THEN
    PERFORM @.tell(p_board, 'cancelled', ARRAY[p_id]);
    RETURN @.answer(p_lane, p_number, '"done"');
  END IF;
  PERFORM FROM @.jobs WHERE id = p_id;
  RETURN @.answer(p_lane, p_number, CASE WHEN FOUND THEN '"done"'::json ELSE '"gone"' END);
END $function$;

CREATE FUNCTION @.set_gate(p_lane uuid, p_number bigint, p_board integer, p_paused boolean)
RETURNS json LANGUAGE plpgsql AS $function$
BEGIN
  PERFORM pg_advisory_xact_lock(${gate}, p_board);
  UPDATE @.boards SET paused = p_paused WHERE id = p_board;
  PERFORM @.tell(p_board, CASE WHEN p_paused THEN 'paused' ELSE 'resumed' END, '{}');
  RETURN @.answer(p_lane, p_number, '"done"');
END $function$;

CREATE FUNCTION @.prune(p_board integer) RETURNS void LANGUAGE plpgsql AS $function$
DECLARE v_horizon pg_snapshot;
BEGIN
  SELECT horizon INTO v_horizon FROM @.boards
  WHERE id = p_board AND horizon_at < clock_timestamp() - interval '2 minutes' FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  DELETE FROM @.changes WHERE board = p_board AND transaction < pg_snapshot_xmax(v_horizon)
    AND pg_visible_in_snapshot(transaction, v_horizon);
  DELETE FROM @.receipts WHERE at < clock_timestamp() - interval '1 day';
  UPDATE @.boards SET horizon = pg_current_snapshot(), horizon_at = clock_timestamp() WHERE id = p_board;
END $function$;`
}
