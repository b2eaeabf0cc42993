-- The tables of boards, in the schema SCHEMA. Values that programs and people search for have columns of their own. The
-- posting is in jobs.body, encoded as msgpack as on other boards, because JSON would not return every value unchanged.
--
-- - A posting is written once. What claims change (runs, attempts, delay) is kept separately in jobs.life, so that a claim
--   does not write a large posting again. Without a life the posting is unchanged since its post.
-- - jobs.session is the claim. A takeover finds the jobs of a dead session by the index on it.
-- - jobs.rank and jobs.id are the claim order, and jobs.due_at is the end of a job's delay. So the head of a long board and
--   the next delayed jobs are found without reading the other jobs.
-- - changes transfers changes between boards: one row per transaction and kind, with the transaction's number. A participant
--   with an older snapshot finds the later commits by that number: see functions/changes.sql. Changes of posts include ranks
--   and due times that are not the default.
-- - A fence is boards.fence_base plus the next value of the sequence fences. The base only grows: a session that begins to
--   claim raises it to the clock, so that a restored or newly created database continues above the granted fences.
--   sessions.fences is the sequence for which the session has done so; a restored sequence is another one, also for a
--   session that continues.
-- - receipts keeps the answer to the last request of each connection, in case it is lost: see functions/receipts.sql.
--
-- In an index with two keys for the same rows, the more selective key comes first: a plan that was made for a small table
-- may use the other key, and read a whole board for each row.
--
-- Ids, and the numbers that order changes, come from sequences without a cache, in the order in which they are drawn.

CREATE TABLE :SCHEMA.boards (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  format integer NOT NULL,
  paused boolean NOT NULL DEFAULT false,
  fence_base bigint NOT NULL DEFAULT 0,
  horizon pg_snapshot NOT NULL DEFAULT pg_current_snapshot(),
  horizon_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE SEQUENCE :SCHEMA.session_ids AS integer;
CREATE SEQUENCE :SCHEMA.job_ids;
CREATE SEQUENCE :SCHEMA.fences;

CREATE TABLE :SCHEMA.sessions (
  id integer PRIMARY KEY DEFAULT nextval(':SCHEMA.session_ids'),
  board integer NOT NULL REFERENCES :SCHEMA.boards ON DELETE CASCADE,
  who text NOT NULL,
  backend integer NOT NULL,
  backend_start timestamptz NOT NULL,
  server_start timestamptz NOT NULL,
  ttl interval NOT NULL,
  heartbeat_at timestamptz NOT NULL,
  fences oid,
  lock integer,
  attachment integer NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_board ON :SCHEMA.sessions (board);

CREATE TABLE :SCHEMA.jobs (
  id bigint NOT NULL DEFAULT nextval(':SCHEMA.job_ids'),
  board integer NOT NULL,
  uuid text COLLATE "C" NOT NULL,
  name text NOT NULL,
  priority text NOT NULL,
  rank smallint NOT NULL GENERATED ALWAYS AS (CASE priority
    WHEN 'VERY_HIGH' THEN 0 WHEN 'HIGH' THEN 1 WHEN 'NORMAL' THEN 2 WHEN 'LOW' THEN 3 WHEN 'VERY_LOW' THEN 4 END) STORED,
  key bytea,
  on_owner_lost text,
  body bytea NOT NULL,
  life bytea,
  revision integer NOT NULL DEFAULT 0,
  session integer,
  who text,
  cancelled_by text,
  cancel_reason text,
  posted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  written_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  due_at timestamptz NOT NULL DEFAULT '-infinity',
  PRIMARY KEY (id)
);
CREATE INDEX jobs_in_order ON :SCHEMA.jobs (board, rank, id, due_at);
CREATE INDEX jobs_that_rest ON :SCHEMA.jobs (board, due_at) WHERE due_at > '-infinity';
CREATE INDEX jobs_by_uuid ON :SCHEMA.jobs (uuid);
CREATE UNIQUE INDEX jobs_by_key ON :SCHEMA.jobs (board, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_by_session ON :SCHEMA.jobs (session) WHERE session IS NOT NULL;

CREATE TABLE :SCHEMA.permits (
  board integer NOT NULL,
  resource bigint NOT NULL,
  job bigint NOT NULL,
  name text NOT NULL,
  exclusive boolean NOT NULL,
  session integer NOT NULL,
  PRIMARY KEY (resource, board, job, name)
);
CREATE INDEX permits_by_job ON :SCHEMA.permits (job, board);

CREATE TABLE :SCHEMA.trash (
  id bigint NOT NULL,
  board integer NOT NULL,
  uuid text COLLATE "C" NOT NULL,
  name text NOT NULL,
  body bytea NOT NULL,
  life bytea,
  who text NOT NULL,
  reason text NOT NULL,
  failure bytea,
  trashed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (board, id)
);

CREATE TABLE :SCHEMA.entities (
  board integer NOT NULL,
  key bytea NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  instance text NOT NULL,
  metadata bytea NOT NULL,
  session integer NOT NULL,
  PRIMARY KEY (board, key)
);

CREATE TABLE :SCHEMA.changes (
  number bigint GENERATED ALWAYS AS IDENTITY,
  board integer NOT NULL,
  transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
  kind text NOT NULL,
  jobs bigint[] NOT NULL,
  ranks smallint[],
  dues float8[]
);
CREATE INDEX changes_by_transaction ON :SCHEMA.changes (transaction, board);

CREATE TABLE :SCHEMA.receipts (
  lane uuid PRIMARY KEY,
  number bigint NOT NULL,
  answer json,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
