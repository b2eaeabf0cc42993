-- Adds, in the schema SCHEMA, the backends that were to be ended: see functions/sessions.sql. A row remains until its backend is gone.

-- Names are resolved in Postgres' own schema only: see schema.ts. The setting ends with the transaction.
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

CREATE TABLE IF NOT EXISTS :SCHEMA.ended_backends (
  board integer NOT NULL REFERENCES :SCHEMA.boards ON DELETE CASCADE,
  pid integer NOT NULL,
  start timestamptz NOT NULL,
  who text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (board, pid, start)
);
