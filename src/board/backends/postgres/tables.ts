import { PRIORITIES, rank } from '../../model/priority.ts'

/**
 * The tables of boards. What programs and people look for has a column of its own; the posting is in `body` as everywhere
 * else (msgpack), because JSON would not give back what was put in.
 *
 * - A posting is written once, and what claims change of it (runs, attempts, delay) is apart, in `life`: a claim does not
 *   write a large posting anew. Without a `life` it is as it was posted.
 * - `session` is the claim. The index on it is what a take-over finds the jobs of the dead by.
 * - `changes` is how boards hear of each other: what a transaction did, one row of each kind, with the transaction's number.
 *   Whoever has seen the board in one snapshot reads what was committed since by that number, in `feed.ts`.
 * - A fence is `fence_base` plus the next of `fences`. The base only grows: a session that begins to claim raises it by the
 *   clock, so that a database that was restored, or begun anew, continues above what was handed out. `sessions.fences` is
 *   the sequence for which the session has done so: a restored one is another, also for a session that lives on.
 * - `receipts` holds the answer to the last request of each connection, in case it is lost: `requests.ts`.
 *
 * Where rows are found by one of two keys, the key that tells them apart comes first: a plan that was made for a small table
 * may take the other, and read all of a board for each row.
 *
 * - `rank` and `id` are the claim order; `due_at` is when a delay ends, of a job that rests: so the head of a long board, and
 *   those that wake next, are found without the rest. Of what is posted the changes tell as much, where it is not the usual.
 *
 * Ids, and the numbers that order changes, come from sequences without a cache: in the order of their drawing.
 */
export function tables(schema: string): string {
  const ranks = PRIORITIES.map((priority) => `WHEN '${priority}' THEN ${rank(priority)}`).join(' ')
  return `
CREATE TABLE ${schema}.boards (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  format integer NOT NULL,
  paused boolean NOT NULL DEFAULT false,
  fence_base bigint NOT NULL DEFAULT 0,
  horizon pg_snapshot NOT NULL DEFAULT pg_current_snapshot(),
  horizon_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE SEQUENCE ${schema}.session_ids AS integer;
CREATE SEQUENCE ${schema}.job_ids;
CREATE SEQUENCE ${schema}.fences;
CREATE TABLE ${schema}.sessions (
  id integer PRIMARY KEY DEFAULT nextval('${schema}.session_ids'),
  board integer NOT NULL REFERENCES ${schema}.boards ON DELETE CASCADE,
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
CREATE INDEX sessions_by_board ON ${schema}.sessions (board);
CREATE TABLE ${schema}.jobs (
  id bigint NOT NULL DEFAULT nextval('${schema}.job_ids'),
  board integer NOT NULL,
  uuid text COLLATE "C" NOT NULL,
  name text NOT NULL,
  priority text NOT NULL,
  rank smallint NOT NULL GENERATED ALWAYS AS (CASE priority ${ranks} END) STORED,
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
CREATE INDEX jobs_in_order ON ${schema}.jobs (board, rank, id, due_at);
CREATE INDEX jobs_that_rest ON ${schema}.jobs (board, due_at) WHERE due_at > '-infinity';
CREATE INDEX jobs_by_uuid ON ${schema}.jobs (uuid);
CREATE UNIQUE INDEX jobs_by_key ON ${schema}.jobs (board, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_by_session ON ${schema}.jobs (session) WHERE session IS NOT NULL;
CREATE TABLE ${schema}.permits (
  board integer NOT NULL,
  resource bigint NOT NULL,
  job bigint NOT NULL,
  name text NOT NULL,
  exclusive boolean NOT NULL,
  session integer NOT NULL,
  PRIMARY KEY (resource, board, job, name)
);
CREATE INDEX permits_by_job ON ${schema}.permits (job, board);
CREATE TABLE ${schema}.trash (
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
CREATE TABLE ${schema}.entities (
  board integer NOT NULL,
  key bytea NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  instance text NOT NULL,
  metadata bytea NOT NULL,
  session integer NOT NULL,
  PRIMARY KEY (board, key)
);
CREATE TABLE ${schema}.changes (
  number bigint GENERATED ALWAYS AS IDENTITY,
  board integer NOT NULL,
  transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
  kind text NOT NULL,
  jobs bigint[] NOT NULL,
  ranks smallint[],
  dues float8[]
);
CREATE INDEX changes_by_transaction ON ${schema}.changes (transaction, board);
CREATE TABLE ${schema}.receipts (
  lane uuid PRIMARY KEY,
  number bigint NOT NULL,
  answer json,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);`
}
