-- Adds to each board, in the schema SCHEMA, the transaction before which its changes are deleted: see the function prune in functions/changes.sql.

-- Names are resolved in Postgres' own schema only: see schema.ts. The setting ends with the transaction.
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

ALTER TABLE :SCHEMA.boards ADD COLUMN IF NOT EXISTS pruned xid8 NOT NULL DEFAULT '0';
