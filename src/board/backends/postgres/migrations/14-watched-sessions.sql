-- Adds, in the schema SCHEMA, what tells processes of one host from each other: see connection/host-peers.ts. Orders the sessions of a board, so
-- that each heartbeat reads a few of them: see functions/sessions.sql. No index contains a column that heartbeats change.

-- Names are resolved in Postgres' own schema only: see schema.ts. The setting ends with the transaction.
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

ALTER TABLE :SCHEMA.sessions ADD COLUMN IF NOT EXISTS host text, ADD COLUMN IF NOT EXISTS socket text;
CREATE INDEX IF NOT EXISTS sessions_in_order ON :SCHEMA.sessions (board, id);
CREATE INDEX IF NOT EXISTS sessions_by_host ON :SCHEMA.sessions (host, board, id) WHERE host IS NOT NULL;
-- The index sessions_in_order begins with the same column.
DROP INDEX IF EXISTS :SCHEMA.sessions_by_board;
