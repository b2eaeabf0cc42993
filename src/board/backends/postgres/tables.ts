import { PRIORITIES, rank } from '../../model/priority.ts'

/**
 * Returns the tables of boards. Values that programs and people search for have columns of their own. The posting is in
 * `body`, encoded as msgpack as on other boards, because JSON would not return every value unchanged.
 *
 * - A posting is written once. What claims change (runs, attempts, delay) is kept separately in `life`, so that a claim does
 *   not write a large posting again. Without a `life` the posting is unchanged since its post.
 * - `session` is the claim. A takeover finds the jobs of a dead session by the index on it.
 * - `changes` transfers changes between boards: one row per transaction and kind, with the transaction's number. A participant
 *   with an older snapshot finds the later commits by that number, in `feed.ts`.
 * - A fence is `fence_base` plus the next value of `fences`. The base only grows: a session that begins to claim raises it to
 *   the clock, so that a restored or newly created database continues above the granted fences. `sessions.fences` is the
 *   sequence for which the session has done so; a restored sequence is another one, also for a session that continues.
 * - `receipts` keeps the answer to the last request of each connection, in case it is lost: `requests.ts`.
 *
 * In an index with two keys for the same rows, the more selective key comes first: a plan that was made for a small table may
 * use the other key, and read a whole board for each row.
 *
 * - `rank` and `id` are the claim order, and `due_at` is the end of a job's delay. So the head of a long board and the next
 *   delayed jobs are found without reading the other jobs. Changes of posts include ranks and due times that are not the default.
 *
 * Ids, and the numbers that order changes, come from sequences without a cache, in the order in which they are drawn.
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
