/**
 * SQL function that attaches a session to another connection: a session outlives its connection within its TTL.
 *
 * The session's row decides, under its lock. It names the attached backend, the number of the advisory lock that this backend
 * holds, and the number of attachments. Each attachment takes a lock with a new number. So it does not wait until the former
 * backend detects its broken connection, nor for a stopped backend. A late request of a former attachment has a smaller
 * number and is refused.
 *
 * A takeover locks the same row, skips it while it is locked, and decides by the same heartbeat. So one of the two comes
 * first, and the other finds that the session has ended or is alive.
 */
/** Returns the function, with `@` for the schema. */
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
