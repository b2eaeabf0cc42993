-- Adds the columns that the tables of an older release are missing, in the schema SCHEMA.

ALTER TABLE :SCHEMA.boards ADD COLUMN IF NOT EXISTS fence_base bigint NOT NULL DEFAULT 0;
ALTER TABLE :SCHEMA.sessions
  ADD COLUMN IF NOT EXISTS fences oid,
  ADD COLUMN IF NOT EXISTS lock integer,
  ADD COLUMN IF NOT EXISTS attachment integer NOT NULL DEFAULT 0;
UPDATE :SCHEMA.sessions SET lock = id WHERE lock IS NULL;
