-- Functions by which a session says whether it is to be notified of changes (sessions.notified).
--
-- NOTIFY takes a lock of the whole database until the commit has reached the disk, so transactions that notify commit one after the other.
-- Therefore log_change notifies only if a session of the board asks for it. A session that receives many changes clears its flag, and polls.
--
-- No notification is missed. log_change inserts the change, and then reads the flags in a new snapshot. So a transaction that has read the old flags
-- already holds a lock on the table changes, and holds it until its end. The session first sets its flag, then reads which transactions hold this lock,
-- and polls until they all have ended.

-- Sets whether the session of this connection is to be notified. Does nothing if the session is attached to another connection: a late request must not
-- clear a flag that was set over the newer connection. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.set_notified(p_session integer, p_notified boolean)
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  -- Does not wait for the disk. If the server crashes, the session sets its flag over its next connection.
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE :SCHEMA.sessions SET notified = p_notified
  WHERE id = p_session AND backend = pg_backend_pid() AND notified <> p_notified;
END $function$;

-- Returns the numbers of the transactions that have recorded changes and are open, also prepared ones.
CREATE OR REPLACE FUNCTION :SCHEMA.changing_transactions()
RETURNS text[] LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  RETURN (SELECT coalesce(array_agg(t.transactionid::text), '{}')
    FROM pg_locks c JOIN pg_locks t ON t.virtualtransaction = c.virtualtransaction
    WHERE c.locktype = 'relation' AND c.relation = ':SCHEMA.changes'::regclass AND c.mode = 'RowExclusiveLock' AND c.granted
      AND c.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND t.locktype = 'transactionid' AND t.mode = 'ExclusiveLock' AND t.granted);
END $function$;
