-- Functions of sessions. A session lives while its backend holds its lock and its heartbeats arrive. A lock of another
-- backend proves nothing, because any role that may connect can take it. So a session does not wait for a lock, and takes
-- one with a random number: the numbers of a sequence are predictable, and each number that another role holds would be
-- lost.
--
-- LOCK_CLASS is the first key of these advisory locks; the view pg_locks shows it without a sign (UNSIGNED_LOCK_CLASS).
--
-- A session can outlive its connection within its TTL: it attaches to another one. The session's row, which is changed under
-- its lock, decides which one. It names the attached backend, the number of the advisory lock that this backend holds, and
-- the number of attachments. Each attachment takes a lock with a new number. So it does not wait until the former backend
-- detects its broken connection, nor for a stopped backend. A late request of a former attachment has a smaller number and
-- is refused.
--
-- A takeover decides by the heartbeat that was committed last. It waits for no lock of the session, because the backends of the session may
-- be stopped within a transaction, and then keep their locks. It frees the jobs that no transaction has locked. A later request of the
-- session finds no claim. A request that was stopped while it settled a job still decides about this job alone. The row of the session
-- remains until no transaction of the session is open: a claim that commits late belongs to a session that is over, and the next takeover
-- frees it. An owner accepts the answer to a heartbeat or an attachment only while its previous lease is valid (session.ts). So the owner
-- knows that its claims are lost before any takeover that did not see the commit.
--
-- Each session watches the sessions with the next higher numbers, until it has found three that are alive. After the highest number it goes on with the
-- lowest. So each session is watched by three living ones, the cost of a heartbeat does not depend on the number of sessions, and no index contains a
-- value that heartbeats change.
--
-- A session is also taken over before its TTL has passed, if its process has certainly ended: see connection/host-peers.ts.

-- Returns whether the last heartbeat of a session is older than p_times its TTL. A row that was made by hand may have any TTL: a time out of
-- range would be an error, and no session of the board would be looked at.
CREATE OR REPLACE FUNCTION :SCHEMA.is_silent(p_heartbeat timestamptz, p_ttl interval, p_times integer)
RETURNS boolean LANGUAGE sql VOLATILE
SET search_path TO pg_catalog, pg_temp
AS $function$
  SELECT p_heartbeat < clock_timestamp() - p_times * greatest(least(p_ttl, interval '100 years'), interval '-100 years')
$function$;

-- Takes an advisory lock with a random number for the session of this connection, twice: see keeps_lock. Returns the number.
CREATE OR REPLACE FUNCTION :SCHEMA.lock_session()
RETURNS integer LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_number integer;
BEGIN
  LOOP
    v_number := ('x' || left(gen_random_uuid()::text, 8))::bit(32)::integer & 2147483647;
    EXIT WHEN pg_try_advisory_lock(:LOCK_CLASS, v_number);
  END LOOP;
  PERFORM pg_advisory_lock(:LOCK_CLASS, v_number);
  RETURN v_number;
END $function$;

-- Returns the host of a process with the address from which the server sees it. Copies of a virtual machine may have the same host; they differ in their
-- addresses, unless a gateway or a pooler is in between.
CREATE OR REPLACE FUNCTION :SCHEMA.host_of(p_host text)
RETURNS text LANGUAGE sql STABLE
SET search_path TO pg_catalog, pg_temp
AS $function$
  SELECT p_host || ' ' || coalesce(inet_client_addr()::text, '')
$function$;

-- Opens a session on this connection, and returns its number. p_who: the name of the owner. p_ttl: the TTL in milliseconds. p_notified:
-- whether it is to be notified of changes. p_host, p_socket: the host of its process, and the socket by which other processes of this host know
-- that it lives; null if there is none.
CREATE OR REPLACE FUNCTION :SCHEMA.open_session(p_board integer, p_who text, p_ttl float8, p_notified boolean, p_host text, p_socket text)
RETURNS integer LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_id integer := nextval(':SCHEMA.session_ids');
  v_lock integer := :SCHEMA.lock_session();
BEGIN
  INSERT INTO :SCHEMA.sessions (id, board, who, backend, backend_start, server_start, ttl, heartbeat_at, lock, notified, host, socket)
  SELECT v_id, p_board, p_who, pid, backend_start, pg_postmaster_start_time(), p_ttl * interval '1 ms', clock_timestamp(),
    v_lock, p_notified, :SCHEMA.host_of(p_host), p_socket
  FROM pg_stat_activity WHERE pid = pg_backend_pid();
  RETURN v_id;
END $function$;

-- Opens a session for a process of an older release, which relies on notifications and has no socket.
CREATE OR REPLACE FUNCTION :SCHEMA.open_session(p_board integer, p_who text, p_ttl float8)
RETURNS integer LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  RETURN :SCHEMA.open_session(p_board, p_who, p_ttl, true, NULL, NULL);
END $function$;

-- Returns whether the session exists and the server was not restarted since. Locks its row until the end of the transaction,
-- so that the session cannot end meanwhile.
CREATE OR REPLACE FUNCTION :SCHEMA.is_alive(p_session integer)
RETURNS boolean LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  PERFORM FROM :SCHEMA.sessions WHERE id = p_session AND server_start = pg_postmaster_start_time() FOR KEY SHARE;
  RETURN FOUND;
END $function$;

-- Returns whether this connection holds the advisory lock with this number. Releases the lock once, which shows whether it was held, and takes it again. A
-- session has taken its lock twice, so the lock is never free in between, and no waiting role gets it. The view pg_locks would list all locks of the
-- server. A session that was opened before this release has taken its lock only once: it is free for a moment.
CREATE OR REPLACE FUNCTION :SCHEMA.keeps_lock(p_lock integer)
RETURNS boolean LANGUAGE plpgsql
SET client_min_messages TO error
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  RETURN pg_advisory_unlock(:LOCK_CLASS, p_lock) AND pg_try_advisory_lock(:LOCK_CLASS, p_lock);
END $function$;

-- Returns what a session of a board watches, as {expired, next}: the numbers of the watched sessions whose TTL has passed, and the milliseconds
-- until the TTL of another one passes, which is null if there is none.
--
-- The settings keep the plan from reading more rows than these. What was known of the table when the plan was made does not matter then.
CREATE OR REPLACE FUNCTION :SCHEMA.watched_sessions(p_board integer, p_session integer)
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_bitmapscan TO off SET enable_sort TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_after integer := p_session;
  v_before integer := 2147483647;
  v_other record;
  v_expired integer[] := '{}';
  v_alive integer := 0;
  v_next timestamptz;
BEGIN
  FOR v_part IN 1..2 LOOP
    FOR v_other IN SELECT id, heartbeat_at, ttl FROM :SCHEMA.sessions
      WHERE board = p_board AND id > v_after AND id < v_before ORDER BY id
    LOOP
      IF :SCHEMA.is_silent(v_other.heartbeat_at, v_other.ttl, 1) THEN
        v_expired := v_expired || v_other.id;
      ELSE
        v_next := least(v_next,
          least(v_other.heartbeat_at, v_now) + greatest(least(v_other.ttl, interval '100 years'), interval '0'));
        v_alive := v_alive + 1;
      END IF;
      EXIT WHEN v_alive >= 3;
    END LOOP;
    EXIT WHEN v_alive >= 3;
    v_after := -2147483648;
    v_before := p_session;
  END LOOP;
  RETURN json_build_object('expired', v_expired, 'next', extract(epoch FROM v_next - v_now)::float8 * 1000);
END $function$;

-- Records a heartbeat of the session of this connection. Returns what the session watches, as watched_sessions does; null if the session has
-- ended, is attached to another connection or has lost its lock, or if the server was restarted.
CREATE OR REPLACE FUNCTION :SCHEMA.renew_session(p_session integer)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_board integer;
  v_lock integer;
BEGIN
  UPDATE :SCHEMA.sessions SET heartbeat_at = clock_timestamp()
  WHERE id = p_session AND backend = pg_backend_pid() AND server_start = pg_postmaster_start_time()
  RETURNING board, lock INTO v_board, v_lock;
  IF NOT FOUND OR :SCHEMA.keeps_lock(v_lock) IS NOT TRUE THEN RETURN NULL; END IF;
  RETURN :SCHEMA.watched_sessions(v_board, p_session);
END $function$;

-- Records a heartbeat as renew_session does. Returns only the numbers of expired sessions. Processes of an older release call it.
CREATE OR REPLACE FUNCTION :SCHEMA.heartbeat(p_session integer)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  RETURN :SCHEMA.renew_session(p_session)->'expired';
END $function$;

-- Asks the backend of a connection that is not used any more to end, if this role may do so, and notes it: a stopped backend ends only
-- after it continues, and other processes can see it until then. p_who: the owner. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.end_backend(p_board integer, p_who text, p_backend integer, p_start timestamptz)
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  INSERT INTO :SCHEMA.ended_backends (board, pid, start, who)
  SELECT p_board, pid, backend_start, p_who FROM pg_stat_activity
  WHERE pid = p_backend AND backend_start = p_start AND pid <> pg_backend_pid()
  ON CONFLICT DO NOTHING;
  BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid = p_backend AND backend_start = p_start AND pid <> pg_backend_pid();
  EXCEPTION WHEN insufficient_privilege THEN
    NULL;
  END;
END $function$;

-- Returns the backends that were asked to end more than 10 seconds ago and still exist, each as {backend, who, seconds, jobs}: the
-- number of jobs that their transactions keep claimed.
CREATE OR REPLACE FUNCTION :SCHEMA.stopped_backends(p_board integer)
RETURNS json LANGUAGE plpgsql STABLE
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_object('backend', e.pid, 'who', e.who,
    'seconds', extract(epoch FROM clock_timestamp() - e.at)::float8, 'jobs', (SELECT count(*) FROM :SCHEMA.sessions s
      JOIN :SCHEMA.jobs j ON j.session = s.id
      WHERE s.board = p_board AND s.who = e.who AND :SCHEMA.is_silent(s.heartbeat_at, s.ttl, 2))) ORDER BY e.at), '[]')
  FROM :SCHEMA.ended_backends e JOIN pg_stat_activity a ON a.pid = e.pid AND a.backend_start = e.start
  WHERE e.board = p_board AND e.at < clock_timestamp() - interval '10 s');
END $function$;

-- Attaches a session to this connection, and ends the backend of its former one. p_attachment: the number of the attachment.
-- Returns false if the session has ended, its TTL has passed, the server was restarted, or a later attachment came first.
--
-- A role that may not end the former backend still attaches: that backend ends when it detects its broken connection.
CREATE OR REPLACE FUNCTION :SCHEMA.reattach(p_session integer, p_attachment integer)
RETURNS boolean LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_session :SCHEMA.sessions;
  v_lock integer;
BEGIN
  SELECT * INTO v_session FROM :SCHEMA.sessions
  WHERE id = p_session AND server_start = pg_postmaster_start_time() FOR NO KEY UPDATE;
  IF NOT FOUND OR :SCHEMA.is_silent(v_session.heartbeat_at, v_session.ttl, 1) OR v_session.attachment >= p_attachment THEN
    RETURN false;
  END IF;
  v_lock := :SCHEMA.lock_session();
  UPDATE :SCHEMA.sessions s SET backend = a.pid, backend_start = a.backend_start, lock = v_lock, attachment = p_attachment,
    heartbeat_at = clock_timestamp()
  FROM pg_stat_activity a WHERE s.id = p_session AND a.pid = pg_backend_pid();
  PERFORM :SCHEMA.end_backend(v_session.board, v_session.who, v_session.backend, v_session.backend_start);
  RETURN true;
END $function$;

-- Releases claims of a session that is over, moves its jobs with onOwnerLost = fail to the trash, and removes its entities. p_jobs: its
-- jobs, whose rows are locked. Returns nothing. The history of a board keeps a million jobs at most.
CREATE OR REPLACE FUNCTION :SCHEMA.free_session(p_board integer, p_session integer, p_jobs bigint[])
RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_trashed bigint[];
  v_freed bigint[];
  v_dependents bigint[];
  v_batches bigint[];
BEGIN
  v_dependents := :SCHEMA.lock_dependents(ARRAY(SELECT id FROM :SCHEMA.jobs WHERE id = ANY(p_jobs) AND on_owner_lost = 'fail'));
  WITH gone AS (
    DELETE FROM :SCHEMA.jobs WHERE id = ANY(p_jobs) AND on_owner_lost = 'fail'
    RETURNING *, 'its owner ' || who || ' was lost' AS reason
  ), ended AS (
    INSERT INTO :SCHEMA.history (board, uuid, body, life, who, reason, posted_at)
    SELECT board, uuid, body, life, who, reason, posted_at FROM gone
  ), kept AS (
    INSERT INTO :SCHEMA.trash (id, board, uuid, name, body, life, who, reason)
    SELECT id, board, uuid, name, body, life, who, reason FROM gone RETURNING id
  ), failed AS (
    INSERT INTO :SCHEMA.batch_failures (job, batch) SELECT id, batch FROM gone WHERE batch IS NOT NULL
  )
  SELECT array_agg(id ORDER BY id), (SELECT array_agg(DISTINCT batch) FROM gone) INTO v_trashed, v_batches FROM kept;
  WITH freed AS (
    UPDATE :SCHEMA.jobs SET session = NULL, who = NULL WHERE id = ANY(p_jobs) RETURNING id
  )
  SELECT array_agg(id ORDER BY id) INTO v_freed FROM freed;
  DELETE FROM :SCHEMA.permits WHERE job = ANY(v_freed || v_trashed) AND board = p_board;
  DELETE FROM :SCHEMA.slots WHERE job = ANY(v_freed || v_trashed) AND board = p_board;
  DELETE FROM :SCHEMA.entities WHERE board = p_board AND key = ANY(ARRAY(
    SELECT key FROM :SCHEMA.entities WHERE board = p_board AND session = p_session ORDER BY key FOR UPDATE SKIP LOCKED));
  PERFORM FROM :SCHEMA.followers
  WHERE session = p_session OR (job = ANY(v_trashed) AND board = p_board) ORDER BY job, session FOR UPDATE;
  DELETE FROM :SCHEMA.followers WHERE session = p_session;
  IF v_trashed IS NOT NULL THEN
    PERFORM :SCHEMA.log_change(p_board, 'trashed', v_trashed);
    PERFORM :SCHEMA.trim_history(p_board, 1000000);
  END IF;
  IF v_dependents IS NOT NULL THEN PERFORM :SCHEMA.release_dependents(p_board, NULL, v_trashed); END IF;
  IF v_freed IS NOT NULL THEN PERFORM :SCHEMA.log_change(p_board, 'freed', v_freed); END IF;
  IF v_batches IS NOT NULL THEN PERFORM :SCHEMA.count_ends(v_batches); END IF;
END $function$;

-- Ends the session of this process, which waits for its own requests. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.end_session(p_session integer)
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_board integer;
BEGIN
  DELETE FROM :SCHEMA.sessions WHERE id = p_session RETURNING board INTO v_board;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM :SCHEMA.free_session(v_board, p_session,
    ARRAY(SELECT id FROM :SCHEMA.jobs WHERE session = p_session ORDER BY id FOR UPDATE));
END $function$;

-- Returns whether the backend holds the advisory lock with this number.
CREATE OR REPLACE FUNCTION :SCHEMA.is_held(p_lock integer, p_backend integer)
RETURNS boolean LANGUAGE sql STABLE
SET search_path TO pg_catalog, pg_temp
AS $function$
  SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint = :UNSIGNED_LOCK_CLASS AND objid::bigint = p_lock AND pid = p_backend)
$function$;

-- Returns the owners of a board that have sent no heartbeat for twice their TTL while their backend still holds their lock,
-- each as {session, who, backend, silent (in seconds), jobs (the number of claimed jobs)}.
CREATE OR REPLACE FUNCTION :SCHEMA.stopped_owners(p_board integer)
RETURNS json LANGUAGE sql STABLE
SET search_path TO pg_catalog, pg_temp
AS $function$
  SELECT coalesce(json_agg(json_build_object('session', s.id, 'who', s.who, 'backend', s.backend,
    'silent', extract(epoch FROM clock_timestamp() - greatest(s.heartbeat_at, 'epoch'))::float8,
    'jobs', (SELECT count(*) FROM :SCHEMA.jobs j WHERE j.session = s.id)) ORDER BY s.id), '[]')
  FROM :SCHEMA.sessions s
  WHERE s.board = p_board AND
    :SCHEMA.is_silent(s.heartbeat_at, s.ttl, 2) AND :SCHEMA.is_held(s.lock, s.backend)
$function$;

-- Frees the jobs of a session that is over, and deletes its row. Returns ended if it did; hung if a transaction has locked jobs or the row of
-- the session.
CREATE OR REPLACE FUNCTION :SCHEMA.remove_session(p_board integer, p_session integer)
RETURNS text LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  PERFORM :SCHEMA.free_session(p_board, p_session,
    ARRAY(SELECT id FROM :SCHEMA.jobs WHERE session = p_session ORDER BY id FOR UPDATE SKIP LOCKED));
  PERFORM FROM :SCHEMA.sessions WHERE id = p_session FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 'hung'; END IF;
  -- Only now no claim of this session can commit any more.
  DELETE FROM :SCHEMA.sessions WHERE id = p_session AND NOT EXISTS (SELECT FROM :SCHEMA.jobs WHERE session = p_session);
  RETURN CASE WHEN FOUND THEN 'ended' ELSE 'hung' END;
END $function$;

-- Ends a session whose TTL has passed: see the head of this file. Returns ended if it did; gone if the session has ended already; alive if
-- there was a new heartbeat; hung if its backend still holds the lock, or if one of its transactions has locked jobs or the row of the
-- session: the caller tries again. The takeover waits a moment for the backend to end, because this frees the locks of its resources; then
-- the jobs are freed without it.
CREATE OR REPLACE FUNCTION :SCHEMA.take_over(p_session integer)
RETURNS text LANGUAGE plpgsql
SET lock_timeout TO 2000
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_session :SCHEMA.sessions;
BEGIN
  SELECT * INTO v_session FROM :SCHEMA.sessions WHERE id = p_session;
  IF NOT FOUND THEN RETURN 'gone'; END IF;
  IF NOT :SCHEMA.is_silent(v_session.heartbeat_at, v_session.ttl, 1) THEN RETURN 'alive'; END IF;
  PERFORM :SCHEMA.end_backend(v_session.board, v_session.who, v_session.backend, v_session.backend_start);
  IF :SCHEMA.is_held(v_session.lock, v_session.backend)
    AND NOT :SCHEMA.is_silent(v_session.heartbeat_at + greatest(least(v_session.ttl / 2, interval '5 s'), interval '0'), v_session.ttl, 1)
    THEN RETURN 'hung'; END IF;
  RETURN :SCHEMA.remove_session(v_session.board, p_session);
END $function$;

-- Ends a session before its TTL has passed. p_socket: the socket of its process, which has certainly ended. Returns what take_over does.
--
-- As a second proof, the lock of the session must be free: a backend that still holds it is not asked to end. The row stays locked meanwhile,
-- so that the session cannot be attached to another connection.
CREATE OR REPLACE FUNCTION :SCHEMA.take_over_ended(p_session integer, p_socket text)
RETURNS text LANGUAGE plpgsql
SET lock_timeout TO 2000
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_session :SCHEMA.sessions;
BEGIN
  SELECT * INTO v_session FROM :SCHEMA.sessions
  WHERE id = p_session AND socket = p_socket FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN CASE WHEN EXISTS (SELECT FROM :SCHEMA.sessions WHERE id = p_session AND socket = p_socket) THEN 'hung' ELSE 'gone' END;
  END IF;
  IF :SCHEMA.is_held(v_session.lock, v_session.backend) THEN RETURN 'hung'; END IF;
  RETURN :SCHEMA.remove_session(v_session.board, p_session);
END $function$;
