-- The tables of a file: several boards, and logbooks. A transaction has the only write lock of the file, so no step needs locks of rows.
--
-- - A posting is written once: in jobs.body, or in bodies if it is large. What claims change is in jobs.life, so that a claim does not write
--   a large posting again.
-- - jobs.due_at is in milliseconds since 1970: 0 for a job that is due at once, and infinite for a job that waits for others. due_when_ready is
--   then its due time after that. A doomed job, which was cancelled because another job failed, and never ran, has an infinite due_when_ready.
-- - jobs.queue is null for the default queue.
-- - changes is the feed. Its numbers are in the order of commits and have no gaps; its newest row is never deleted.
-- - Numbers have ranges: a number above 2^53 in any row would make every read of it fail.
-- - Text that users choose is stored as `encodeText` returns it: some releases of SQLite cut it at a NUL character.

-- limits, records and history count the changes of these; fence is the newest one.
CREATE TABLE boards (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, paused INTEGER NOT NULL DEFAULT 0, fence INTEGER NOT NULL DEFAULT 0,
  limits INTEGER NOT NULL DEFAULT 0, records INTEGER NOT NULL DEFAULT 0, history INTEGER NOT NULL DEFAULT 0,
  CHECK (min(id, paused, fence, limits, records, history) >= 0 AND max(id, paused, fence, limits, records, history) < 9e15)
) STRICT;

-- A process is alive while it holds the lock of its file, FILE-process-id.
CREATE TABLE processes (id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, CHECK (min(id, pid) >= 0 AND max(id, pid) < 9e15)) STRICT;
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, board INTEGER NOT NULL, process INTEGER NOT NULL, who TEXT NOT NULL, ttl REAL NOT NULL,
  heartbeat_at REAL NOT NULL, CHECK (min(id, board, process) >= 0 AND max(id, board, process) < 9e15)
) STRICT;
CREATE INDEX sessions_by_process ON sessions (process);

CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, board INTEGER NOT NULL, uuid TEXT NOT NULL, rank INTEGER NOT NULL, due_at REAL NOT NULL,
  session INTEGER, cancelled_by TEXT, revision INTEGER NOT NULL DEFAULT 0, ran INTEGER NOT NULL DEFAULT 0, batch INTEGER,
  due_when_ready REAL, posted_at REAL NOT NULL, written_at REAL NOT NULL, who TEXT, key TEXT, cancel_reason TEXT, life BLOB, body BLOB,
  queue TEXT,
  CHECK (id > 0 AND min(board, ran, revision, coalesce(session, 0), coalesce(batch, 0)) >= 0
    AND max(id, board, ran, revision, coalesce(session, 0), coalesce(batch, 0)) < 9e15 AND rank BETWEEN 0 AND 4
    AND posted_at BETWEEN 0 AND 8.64e15 AND written_at BETWEEN 0 AND 8.64e15 AND due_at >= 0)
) STRICT;
CREATE INDEX jobs_in_order ON jobs (board, rank, id);
CREATE INDEX jobs_that_rest ON jobs (board, due_at) WHERE due_at > 0;
CREATE INDEX jobs_in_queues ON jobs (board, queue, rank, id) WHERE queue IS NOT NULL;
CREATE INDEX jobs_that_rest_in_queues ON jobs (board, queue, due_at) WHERE queue IS NOT NULL AND due_at > 0;
CREATE INDEX jobs_by_uuid ON jobs (uuid);
CREATE UNIQUE INDEX jobs_by_key ON jobs (board, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_by_session ON jobs (session) WHERE session IS NOT NULL;
CREATE UNIQUE INDEX jobs_by_batch ON jobs (batch, uuid) WHERE batch IS NOT NULL;

CREATE TABLE bodies (job INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

CREATE TABLE key_windows (
  board INTEGER NOT NULL, key TEXT NOT NULL, job INTEGER NOT NULL, uuid TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (board, key),
  CHECK (board BETWEEN 0 AND 9e15 AND job BETWEEN 0 AND 9e15)
) STRICT, WITHOUT ROWID;
CREATE INDEX key_windows_by_end ON key_windows (until);

-- The resources that claims hold.
CREATE TABLE permits (
  board INTEGER NOT NULL, name TEXT NOT NULL, job INTEGER NOT NULL, exclusive INTEGER NOT NULL, PRIMARY KEY (board, name, job),
  CHECK (board BETWEEN 0 AND 9e15 AND job BETWEEN 0 AND 9e15)
) STRICT, WITHOUT ROWID;
CREATE INDEX permits_by_job ON permits (job);

-- The slots of limits that claims hold, and the tokens that they have taken: arrival is explained in `model/limits.ts`.
CREATE TABLE slots (
  board INTEGER NOT NULL, key TEXT NOT NULL, job INTEGER NOT NULL, PRIMARY KEY (board, key, job),
  CHECK (board BETWEEN 0 AND 9e15 AND job BETWEEN 0 AND 9e15)
) STRICT, WITHOUT ROWID;
CREATE INDEX slots_by_job ON slots (job);
CREATE TABLE tokens (
  board INTEGER NOT NULL, key TEXT NOT NULL, arrival REAL NOT NULL, interval REAL NOT NULL, burst REAL NOT NULL,
  PRIMARY KEY (board, key), CHECK (arrival BETWEEN 0 AND 1e300 AND interval BETWEEN 0 AND 1e300 AND burst BETWEEN 0 AND 1e300)
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_arrival ON tokens (arrival);

CREATE TABLE dependencies (
  job INTEGER NOT NULL, waits_for INTEGER NOT NULL, settled INTEGER NOT NULL, PRIMARY KEY (waits_for, job),
  CHECK (job BETWEEN 0 AND 9e15 AND waits_for BETWEEN 0 AND 9e15)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependencies_by_job ON dependencies (job);

CREATE TABLE trash (
  number INTEGER PRIMARY KEY AUTOINCREMENT, board INTEGER NOT NULL, id INTEGER NOT NULL UNIQUE, uuid TEXT NOT NULL, body BLOB NOT NULL,
  life BLOB, who TEXT NOT NULL, reason TEXT NOT NULL, failure BLOB, at REAL NOT NULL,
  CHECK (min(number, board) >= 0 AND id > 0 AND max(number, board, id) < 9e15 AND at BETWEEN 0 AND 8.64e15)
) STRICT;
CREATE INDEX trash_in_order ON trash (board, number);
CREATE INDEX trash_by_uuid ON trash (board, uuid, number);

CREATE TABLE history (
  board INTEGER NOT NULL, number INTEGER NOT NULL, uuid TEXT NOT NULL, record BLOB NOT NULL, PRIMARY KEY (board, number),
  CHECK (board BETWEEN 0 AND 9e15 AND number BETWEEN 0 AND 9e15)
) STRICT;
CREATE INDEX history_by_uuid ON history (uuid);

CREATE TABLE batches (
  number INTEGER PRIMARY KEY AUTOINCREMENT, board INTEGER NOT NULL, uuid TEXT NOT NULL, definition BLOB NOT NULL,
  sealed INTEGER NOT NULL DEFAULT 0, generation INTEGER NOT NULL DEFAULT 1, ended_at REAL, cancelled_by TEXT, cancel_reason TEXT,
  total INTEGER NOT NULL DEFAULT 0, UNIQUE (board, uuid),
  CHECK (min(number, board, sealed, generation, total) >= 0 AND max(number, board, sealed, generation, total) < 9e15
    AND coalesce(ended_at, 0) BETWEEN 0 AND 8.64e15)
) STRICT;
CREATE INDEX batches_by_end ON batches (board, ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE batch_failures (job INTEGER PRIMARY KEY, batch INTEGER NOT NULL, CHECK (min(job, batch) >= 0 AND max(job, batch) < 9e15)) STRICT;
CREATE INDEX batch_failures_by_batch ON batch_failures (batch);

CREATE TABLE records (
  board INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, value BLOB NOT NULL, revision INTEGER NOT NULL,
  PRIMARY KEY (board, kind, id), CHECK (min(board, revision) >= 0 AND max(board, revision) < 9e15)
) STRICT, WITHOUT ROWID;

CREATE TABLE entities (
  board INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, instance TEXT NOT NULL, metadata BLOB NOT NULL, session INTEGER NOT NULL,
  PRIMARY KEY (board, kind, name), CHECK (min(board, session) >= 0 AND max(board, session) < 9e15)
) STRICT, WITHOUT ROWID;
CREATE INDEX entities_by_session ON entities (session);

-- job is the number of the session for the kind ended. name is the uuid of a batch, or [kind, id] of a record.
CREATE TABLE changes (
  number INTEGER PRIMARY KEY, board INTEGER NOT NULL, kind TEXT NOT NULL, job INTEGER, rank INTEGER, due REAL, name TEXT,
  CHECK (min(number, board, coalesce(job, 0)) >= 0 AND max(number, board, coalesce(job, 0)) < 9e15 AND coalesce(rank, 0) BETWEEN 0 AND 4)
) STRICT;

-- Logbooks, as in Postgres. flows.term counts the acquires of a flow: a write must name the newest.
CREATE TABLE books (
  id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, name TEXT NOT NULL, meta BLOB NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX books_by_name ON books (name, uuid);
CREATE TABLE flows (
  id INTEGER PRIMARY KEY AUTOINCREMENT, book INTEGER NOT NULL REFERENCES books ON DELETE CASCADE, uuid TEXT NOT NULL, name TEXT NOT NULL,
  version TEXT NOT NULL, state TEXT NOT NULL, meta BLOB NOT NULL, states TEXT NOT NULL, run INTEGER NOT NULL, claim TEXT NOT NULL,
  term INTEGER NOT NULL, writes INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, UNIQUE (book, uuid),
  CHECK (min(id, book, run, term, writes) >= 0 AND max(id, book, run, term, writes) < 9e15)
) STRICT;
CREATE TABLE atoms (
  flow INTEGER NOT NULL REFERENCES flows ON DELETE CASCADE, name TEXT NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL,
  version TEXT NOT NULL, state TEXT NOT NULL, intention TEXT NOT NULL, body BLOB NOT NULL, states TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, PRIMARY KEY (flow, name),
  CHECK (min(flow, position) >= 0 AND max(flow, position) < 9e15)
) STRICT, WITHOUT ROWID;
