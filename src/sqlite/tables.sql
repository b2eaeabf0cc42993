-- The tables of a file: several boards, and logbooks. A transaction has the only write lock of the file, so no step needs locks of rows.
--
-- - A posting is written once, in jobs.body. What claims change is in jobs.life, so that a claim does not write a large posting again.
-- - jobs.due_at is in milliseconds since 1970: 0 for a job that is due at once, and infinite for one that waits for others. due_when_ready is
--   then its due time after that. A doomed job, which was cancelled because another job failed, and never ran, has an infinite due_when_ready.
-- - changes is the feed. Its numbers are in the order of commits and have no gaps; its newest row is never deleted.
-- - Text that users choose is stored as `encodeText` returns it: some releases of SQLite cut it at a NUL character.

CREATE TABLE boards (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, paused INTEGER NOT NULL DEFAULT 0, fence INTEGER NOT NULL DEFAULT 0,
  limits INTEGER NOT NULL DEFAULT 0, records INTEGER NOT NULL DEFAULT 0, history INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A process is alive while it holds the lock of its file, FILE-process-id.
CREATE TABLE processes (id INTEGER PRIMARY KEY AUTOINCREMENT, pid INTEGER NOT NULL) STRICT;
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, board INTEGER NOT NULL, process INTEGER NOT NULL, who TEXT NOT NULL, ttl REAL NOT NULL,
  heartbeat_at REAL NOT NULL
) STRICT;
CREATE INDEX sessions_by_process ON sessions (process);

CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, board INTEGER NOT NULL, uuid TEXT NOT NULL, rank INTEGER NOT NULL, key TEXT, body BLOB NOT NULL,
  life BLOB, ran INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL DEFAULT 0, session INTEGER, who TEXT, cancelled_by TEXT,
  cancel_reason TEXT, posted_at REAL NOT NULL, written_at REAL NOT NULL, due_at REAL NOT NULL, due_when_ready REAL, batch INTEGER
) STRICT;
CREATE INDEX jobs_in_order ON jobs (board, rank, id);
CREATE INDEX jobs_that_rest ON jobs (board, due_at) WHERE due_at > 0;
CREATE INDEX jobs_by_uuid ON jobs (uuid);
CREATE UNIQUE INDEX jobs_by_key ON jobs (board, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_by_session ON jobs (session) WHERE session IS NOT NULL;
CREATE UNIQUE INDEX jobs_by_batch ON jobs (batch, uuid) WHERE batch IS NOT NULL;

CREATE TABLE key_windows (
  board INTEGER NOT NULL, key TEXT NOT NULL, job INTEGER NOT NULL, uuid TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (board, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX key_windows_by_end ON key_windows (until);

CREATE TABLE permits (
  board INTEGER NOT NULL, name TEXT NOT NULL, job INTEGER NOT NULL, exclusive INTEGER NOT NULL, PRIMARY KEY (board, name, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX permits_by_job ON permits (job);

CREATE TABLE slots (board INTEGER NOT NULL, key TEXT NOT NULL, job INTEGER NOT NULL, PRIMARY KEY (board, key, job)) STRICT, WITHOUT ROWID;
CREATE INDEX slots_by_job ON slots (job);
CREATE TABLE tokens (
  board INTEGER NOT NULL, key TEXT NOT NULL, arrival REAL NOT NULL, interval REAL NOT NULL, burst REAL NOT NULL,
  PRIMARY KEY (board, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_arrival ON tokens (arrival);

CREATE TABLE dependencies (
  job INTEGER NOT NULL, waits_for INTEGER NOT NULL, settled INTEGER NOT NULL, PRIMARY KEY (waits_for, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependencies_by_job ON dependencies (job);

CREATE TABLE trash (
  number INTEGER PRIMARY KEY AUTOINCREMENT, board INTEGER NOT NULL, id INTEGER NOT NULL UNIQUE, uuid TEXT NOT NULL, body BLOB NOT NULL,
  life BLOB, who TEXT NOT NULL, reason TEXT NOT NULL, failure BLOB, at REAL NOT NULL
) STRICT;
CREATE INDEX trash_in_order ON trash (board, number);
CREATE INDEX trash_by_uuid ON trash (board, uuid, number);

CREATE TABLE history (
  board INTEGER NOT NULL, number INTEGER NOT NULL, uuid TEXT NOT NULL, record BLOB NOT NULL, PRIMARY KEY (board, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX history_by_uuid ON history (board, uuid);

CREATE TABLE batches (
  number INTEGER PRIMARY KEY AUTOINCREMENT, board INTEGER NOT NULL, uuid TEXT NOT NULL, definition BLOB NOT NULL,
  sealed INTEGER NOT NULL DEFAULT 0, generation INTEGER NOT NULL DEFAULT 1, ended_at REAL, cancelled_by TEXT, cancel_reason TEXT,
  total INTEGER NOT NULL DEFAULT 0, UNIQUE (board, uuid)
) STRICT;
CREATE INDEX batches_by_end ON batches (board, ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE batch_failures (job INTEGER PRIMARY KEY, batch INTEGER NOT NULL) STRICT;
CREATE INDEX batch_failures_by_batch ON batch_failures (batch);

CREATE TABLE records (
  board INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, value BLOB NOT NULL, revision INTEGER NOT NULL, PRIMARY KEY (board, kind, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE entities (
  board INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, instance TEXT NOT NULL, metadata BLOB NOT NULL, session INTEGER NOT NULL,
  PRIMARY KEY (board, kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX entities_by_session ON entities (session);

CREATE TABLE changes (
  number INTEGER PRIMARY KEY, board INTEGER NOT NULL, kind TEXT NOT NULL, job INTEGER, rank INTEGER, due REAL, name TEXT
) STRICT;

-- Logbooks, as in Postgres. flows.term counts the acquires of a flow: a write must name the newest.
CREATE TABLE books (
  id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, name TEXT NOT NULL, meta BLOB NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX books_by_name ON books (name, uuid);
CREATE TABLE flows (
  id INTEGER PRIMARY KEY AUTOINCREMENT, book INTEGER NOT NULL REFERENCES books ON DELETE CASCADE, uuid TEXT NOT NULL, name TEXT NOT NULL,
  version TEXT NOT NULL, state TEXT NOT NULL, meta BLOB NOT NULL, states TEXT NOT NULL, run INTEGER NOT NULL, claim TEXT NOT NULL,
  term INTEGER NOT NULL, writes INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, UNIQUE (book, uuid)
) STRICT;
CREATE TABLE atoms (
  flow INTEGER NOT NULL REFERENCES flows ON DELETE CASCADE, name TEXT NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL,
  version TEXT NOT NULL, state TEXT NOT NULL, intention TEXT NOT NULL, body BLOB NOT NULL, states TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, PRIMARY KEY (flow, name)
) STRICT, WITHOUT ROWID;
