-- Adds to the trash, in the schema SCHEMA, an index by which a job is found by its uuid in one step, however long the trash is.

CREATE INDEX IF NOT EXISTS trash_by_uuid ON :SCHEMA.trash (uuid, board);
