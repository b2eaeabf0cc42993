-- Adds the tables of dependencies and of the history, in the schema SCHEMA: see functions/dependencies.sql and functions/history.sql.
--
-- - dependencies has a row for each dependency that is not met: job is run after waits_for. Rows leave with the end of waits_for, and with the
--   end or the cancellation of job. They change only under a lock of the row of job.
-- - jobs.due_when_ready is the due time of a job that waits for others, from when it does not wait any more; null for all other jobs. As
--   long as a job waits, its due_at is infinity.
-- - history has the jobs that ended last, in the order of their ends. record is what the owner has encoded. A job whose owner was lost has its
--   posting instead (body and life, as in jobs), and who, reason and posted_at.

-- Names are resolved in Postgres' own schema only: see schema.ts. The setting ends with the transaction.
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

ALTER TABLE :SCHEMA.jobs ADD COLUMN IF NOT EXISTS due_when_ready timestamptz;
CREATE TABLE IF NOT EXISTS :SCHEMA.dependencies (
  board integer NOT NULL,
  job bigint NOT NULL,
  waits_for bigint NOT NULL,
  settled boolean NOT NULL,
  PRIMARY KEY (waits_for, job)
);
CREATE INDEX IF NOT EXISTS dependencies_by_job ON :SCHEMA.dependencies (job);
CREATE TABLE IF NOT EXISTS :SCHEMA.history (
  board integer NOT NULL,
  number bigint GENERATED ALWAYS AS IDENTITY,
  uuid text COLLATE "C" NOT NULL,
  ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  record bytea,
  body bytea,
  life bytea,
  who text,
  reason text,
  posted_at timestamptz,
  PRIMARY KEY (board, number)
);
CREATE INDEX IF NOT EXISTS history_by_uuid ON :SCHEMA.history (uuid);

-- Each role that may change jobs may end them. The role that migrates need not be the owner of the tables.
DECLARE
  v_owner oid;
  v_acl aclitem[];
  v_role oid;
  v_table text;
BEGIN
  SELECT relowner, coalesce(relacl, acldefault('r', relowner)) INTO v_owner, v_acl
  FROM pg_class WHERE oid = ':SCHEMA.jobs'::regclass;
  FOREACH v_table IN ARRAY ARRAY['dependencies', 'history'] LOOP
    EXECUTE format('ALTER TABLE :SCHEMA.%I OWNER TO %I', v_table, pg_get_userbyid(v_owner));
    FOR v_role IN SELECT DISTINCT grantee FROM aclexplode(v_acl) WHERE privilege_type = 'UPDATE' AND grantee <> v_owner LOOP
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON :SCHEMA.%I TO %s', v_table,
        CASE WHEN v_role = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_role)) END);
    END LOOP;
  END LOOP;
END;
