/**
 * SQL functions of sessions. A session lives while its backend holds its lock and its heartbeats arrive. A lock of another
 * backend proves nothing, because any role that may connect can take it. So a session does not wait for a lock, and takes one
 * with a random number: the numbers of a sequence are predictable, and each number that another role holds would be lost.
 */
import { lockClasses } from '../names.ts'
import { INDEX_SCAN_SETTINGS } from './plans.ts'

/** Returns the functions, with `@` for the schema. */
export function sessionFunctions(schema: string): string {
  const { session } = lockClasses(schema)
  return `
CREATE FUNCTION @.lock_session() RETURNS integer LANGUAGE plpgsql AS $function$
DECLARE v_number integer;
BEGIN
  LOOP
    v_number := ('x' || left(gen_random_uuid()::text, 8))::bit(32)::integer & 2147483647;
    EXIT WHEN pg_try_advisory_lock(${session}, v_number);
  END LOOP;
  RETURN v_number;
END $function$;

CREATE FUNCTION @.open_session(p_board integer, p_who text, p_ttl float8) RETURNS integer LANGUAGE plpgsql AS $function$
DECLARE
  v_id integer := nextval('@.session_ids');
  v_lock integer := @.lock_session();
BEGIN
  INSERT INTO @.sessions (id, board, who, backend, backend_start, server_start, ttl, heartbeat_at, lock)
  SELECT v_id, p_board, p_who, pid, backend_start, pg_postmaster_start_time(), p_ttl * interval '1 ms', clock_timestamp(),
    v_lock
  FROM pg_stat_activity WHERE pid = pg_backend_pid();
  RETURN v_id;
END $function$;

CREATE FUNCTION @.heartbeat(p_session integer) RETURNS json LANGUAGE plpgsql AS $function$
DECLARE
  v_board integer;
  v_lock integer;
BEGIN
  UPDATE @.sessions SET heartbeat_at = clock_timestamp()
  WHERE id = p_session AND backend = pg_backend_pid() AND server_start = pg_postmaster_start_time()
  RETURNING board, lock INTO v_board, v_lock;
  IF NOT FOUND OR NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objsubid = 2
    AND classid::bigint = ${session >>> 0} AND objid::bigint = v_lock) THEN RETURN NULL; END IF;
  RETURN (SELECT coalesce(json_agg(id), '[]'::json) FROM @.sessions
    WHERE board = v_board AND id <> p_session AND heartbeat_at + ttl < clock_timestamp());
END $function$;

CREATE FUNCTION @.end_session(p_session integer) RETURNS void LANGUAGE plpgsql ${INDEX_SCAN_SETTINGS} AS $function$
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

CREATE FUNCTION @.is_held(p_lock integer, p_backend integer) RETURNS boolean LANGUAGE sql STABLE AS $function$
  SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint = ${session >>> 0} AND objid::bigint = p_lock AND pid = p_backend)
$function$;

CREATE FUNCTION @.stopped_owners(p_board integer) RETURNS json LANGUAGE sql STABLE AS $function$
  SELECT coalesce(json_agg(json_build_object('session', s.id, 'who', s.who, 'backend', s.backend,
    'silent', extract(epoch FROM clock_timestamp() - s.heartbeat_at)::float8,
    'jobs', (SELECT count(*) FROM @.jobs j WHERE j.session = s.id)) ORDER BY s.id), '[]')
  FROM @.sessions s
  WHERE s.board = p_board AND s.heartbeat_at + 2 * s.ttl < clock_timestamp() AND @.is_held(s.lock, s.backend)
$function$;

CREATE FUNCTION @.take_over(p_session integer) RETURNS text LANGUAGE plpgsql AS $function$
DECLARE v_session @.sessions;
BEGIN
  SELECT * INTO v_session FROM @.sessions WHERE id = p_session FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 'gone'; END IF;
  IF v_session.heartbeat_at + v_session.ttl >= clock_timestamp() THEN RETURN 'alive'; END IF;
  IF NOT pg_try_advisory_xact_lock(${session}, v_session.lock) AND @.is_held(v_session.lock, v_session.backend) THEN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid = v_session.backend AND backend_start = v_session.backend_start;
    RETURN 'hung';
  END IF;
  PERFORM @.end_session(p_session);
  RETURN 'ended';
END $function$;`
}
