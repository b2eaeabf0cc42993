-- Adds the tables of batches, in the schema SCHEMA: see functions/batches.sql.
--
-- - jobs.batch is the number of the batch that counts the job; null for a job that none counts.
-- - batches has a row for each batch. total is the number of its posted jobs without those of batch_posts.
-- - batch_posts has a row for each post of jobs to a batch, with their number, until it is added to the total.
-- - batch_failures has the number of each job that has ended in the trash, also after it was purged.
-- - batch_callbacks has the jobs that the end of a batch posts: the posting without what is different each time, and where that belongs. failed:
--   whether it is posted when some jobs have failed.

-- Names are resolved in Postgres' own schema only: see schema.ts. The setting ends with the transaction.
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

ALTER TABLE :SCHEMA.jobs ADD COLUMN IF NOT EXISTS batch bigint;
CREATE UNIQUE INDEX IF NOT EXISTS jobs_by_batch ON :SCHEMA.jobs (batch, uuid) WHERE batch IS NOT NULL;
CREATE INDEX IF NOT EXISTS jobs_free_in_batch ON :SCHEMA.jobs (batch, id) WHERE batch IS NOT NULL AND session IS NULL;
CREATE TABLE IF NOT EXISTS :SCHEMA.batches (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  board integer NOT NULL,
  uuid text COLLATE "C" NOT NULL,
  definition bytea NOT NULL,
  generation integer NOT NULL DEFAULT 1,
  sealed boolean NOT NULL DEFAULT false,
  cancelled_by text,
  cancel_reason text,
  ended_at timestamptz,
  total bigint NOT NULL DEFAULT 0,
  UNIQUE (uuid, board)
);
CREATE INDEX IF NOT EXISTS batches_in_order ON :SCHEMA.batches (board, number);
CREATE INDEX IF NOT EXISTS batches_by_end ON :SCHEMA.batches (board, ended_at, number) WHERE ended_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS :SCHEMA.batch_posts (
  batch bigint NOT NULL,
  jobs integer NOT NULL
);
CREATE INDEX IF NOT EXISTS batch_posts_by_batch ON :SCHEMA.batch_posts (batch);
CREATE TABLE IF NOT EXISTS :SCHEMA.batch_failures (
  job bigint PRIMARY KEY,
  batch bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS batch_failures_by_batch ON :SCHEMA.batch_failures (batch);
CREATE TABLE IF NOT EXISTS :SCHEMA.batch_callbacks (
  batch bigint NOT NULL,
  failed boolean NOT NULL,
  name text NOT NULL,
  priority text NOT NULL,
  on_owner_lost text,
  delay float8,
  body bytea NOT NULL,
  gaps text NOT NULL,
  PRIMARY KEY (batch, failed)
);

-- Each role that may change jobs may end them. The role that migrates need not be the owner of the tables.
DECLARE
  v_owner oid;
  v_acl aclitem[];
  v_role oid;
  v_table text;
BEGIN
  SELECT relowner, coalesce(relacl, acldefault('r', relowner)) INTO v_owner, v_acl
  FROM pg_class WHERE oid = ':SCHEMA.jobs'::regclass;
  FOREACH v_table IN ARRAY ARRAY['batches', 'batch_posts', 'batch_failures', 'batch_callbacks'] LOOP
    EXECUTE format('ALTER TABLE :SCHEMA.%I OWNER TO %I', v_table, pg_get_userbyid(v_owner));
    FOR v_role IN SELECT DISTINCT grantee FROM aclexplode(v_acl) WHERE privilege_type = 'UPDATE' AND grantee <> v_owner LOOP
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON :SCHEMA.%I TO %s', v_table,
        CASE WHEN v_role = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_role)) END);
    END LOOP;
  END LOOP;
END;
