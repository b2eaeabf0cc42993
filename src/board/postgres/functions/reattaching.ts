/**
 * A session outlives its connection: within its time to live its owner goes on with it on another connection.
 *
 * The session's row decides, under its lock. It names the backend that is attached, the number of the advisory lock that
 * this backend holds, and how many attachments there were. Each attachment takes a lock with a new number, so it waits
 * neither for the former backend to notice that its connection is broken nor for one that is stopped. A request of a former
 * attachment that arrives late has a smaller number, and is refused.
 *
 * Whoever takes over locks the same row, skips it while it is locked, and judges by the same heartbeat: so one of the two
 * comes first, and the other finds the session gone or alive.
 */
import { lockClasses } from '../names.ts'

/** Fixed, so that no other schema of the database can stand in for what these functions call. */
const SEARCH_PATH = 'SET search_path = pg_catalog, pg_temp'

/** With `@` for the schema. */
export function reattaching(schema: string): string {
  const { session } = lockClasses(schema)
  return `
ALTER TABLE @.sessions ADD COLUMN lock integer, ADD COLUMN attachment integer NOT NULL DEFAULT 0;
UPDATE @.sessions SET lock = id;

CREATE OR REPLACE FUNCTION @.open_session(p_board integer, p_who text, p_ttl float8) RETURNS integer
LANGUAGE plpgsql ${SEARCH_PATH} AS $function$
DECLARE v_id integer := nextval('@.session_ids');
BEGIN
  PERFORM pg_advisory_lock(${session}, v_id);
  INSERT INTO @.sessions (id, board, who, backend, backend_start, server_start, ttl, heartbeat_at, lock)
  SELECT v_id, p_board, p_who, pid, backend_start, pg_postmaster_start_time(), p_ttl * interval '1 ms', clock_timestamp(),
    v_id
  FROM pg_stat_activity WHERE pid = pg_backend_pid();
  RETURN v_id;
END $function$;

CREATE FUNCTION @.reattach(p_session integer, p_attachment integer) RETURNS boolean
LANGUAGE plpgsql ${SEARCH_PATH} AS $function$
DECLARE
  v_session @.sessions;
  v_lock integer;
BEGIN
  SELECT * INTO v_session FROM @.sessions
  WHERE id = p_session AND server_start = pg_postmaster_start_time() FOR NO KEY UPDATE;
  IF NOT FOUND OR v_session.heartbeat_at + v_session.ttl < clock_timestamp() OR v_session.attachment >= p_attachment THEN
    RETURN false;
  END IF;
  v_lock := nextval('@.session_ids');
  PERFORM pg_advisory_lock(${session}, v_lock);
  UPDATE @.sessions s SET backend = a.pid, backend_start = a.backend_start, lock = v_lock, attachment = p_attachment,
    heartbeat_at = clock_timestamp()
  FROM pg_stat_activity a WHERE s.id = p_session AND a.pid = pg_backend_pid();
  BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid = v_session.backend AND backend_start = v_session.backend_start AND pid <> pg_backend_pid();
  EXCEPTION WHEN insufficient_privilege THEN
    NULL;
  END;
  RETURN true;
END $function$;

CREATE OR REPLACE FUNCTION @.heartbeat(p_session integer) RETURNS json
LANGUAGE plpgsql ${SEARCH_PATH} AS $function$
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

CREATE OR REPLACE FUNCTION @.take_over(p_session integer) RETURNS text
LANGUAGE plpgsql ${SEARCH_PATH} AS $function$
DECLARE v_session @.sessions;
BEGIN
  SELECT * INTO v_session FROM @.sessions WHERE id = p_session FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 'gone'; END IF;
  IF v_session.heartbeat_at + v_session.ttl >= clock_timestamp() THEN RETURN 'alive'; END IF;
  IF NOT pg_try_advisory_xact_lock(${session}, v_session.lock) THEN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid = v_session.backend AND backend_start = v_session.backend_start;
    RETURN 'hung';
  END IF;
  PERFORM @.end_session(p_session);
  RETURN 'ended';
END $function$;`.replaceAll('@', schema)
}
