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
/** With `@` for the schema. */
export function reattachFunctions(): string {
  return `
CREATE FUNCTION @.reattach(p_session integer, p_attachment integer) RETURNS boolean LANGUAGE plpgsql AS $function$
DECLARE
  v_session @.sessions;
  v_lock integer;
BEGIN
  SELECT * INTO v_session FROM @.sessions
  WHERE id = p_session AND server_start = pg_postmaster_start_time() FOR NO KEY UPDATE;
  IF NOT FOUND OR v_session.heartbeat_at + v_session.ttl < clock_timestamp() OR v_session.attachment >= p_attachment THEN
    RETURN false;
  END IF;
  v_lock := @.lock_session();
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
END $function$;`
}
