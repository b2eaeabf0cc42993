-- Adds to each key of a limit, in the schema SCHEMA, the rate by which its tokens were taken: see functions/limits.sql.

-- Names are resolved in Postgres' own schema only: see schema.ts. The setting ends with the transaction.
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

-- The milliseconds in which a token comes back, and the burst; 0 if they are not known.
ALTER TABLE :SCHEMA.limit_keys ADD COLUMN IF NOT EXISTS spacing float8 NOT NULL DEFAULT 0;
ALTER TABLE :SCHEMA.limit_keys ADD COLUMN IF NOT EXISTS burst float8 NOT NULL DEFAULT 0;
