-- Adds the table of followed jobs, in the schema SCHEMA: sessions that receive the changes of single jobs. Rows are deleted with the job
-- or with the session: see functions/following.sql.

-- Names are resolved in Postgres' own schema only: see schema.ts. The setting ends with the transaction.
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

CREATE TABLE IF NOT EXISTS :SCHEMA.followers (
  board integer NOT NULL,
  job bigint NOT NULL,
  session integer NOT NULL,
  PRIMARY KEY (job, board, session)
);
CREATE INDEX IF NOT EXISTS followers_by_session ON :SCHEMA.followers (session);

-- Each role that may change jobs may follow them: log_change reads the table for every change, as the role that makes it. The role
-- that migrates need not be the owner of the tables.
DECLARE
  v_owner oid;
  v_acl aclitem[];
  v_role oid;
BEGIN
  SELECT relowner, coalesce(relacl, acldefault('r', relowner)) INTO v_owner, v_acl
  FROM pg_class WHERE oid = ':SCHEMA.jobs'::regclass;
  EXECUTE format('ALTER TABLE :SCHEMA.followers OWNER TO %I', pg_get_userbyid(v_owner));
  FOR v_role IN SELECT DISTINCT grantee FROM aclexplode(v_acl) WHERE privilege_type = 'UPDATE' AND grantee <> v_owner LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON :SCHEMA.followers TO %s',
      CASE WHEN v_role = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_role)) END);
  END LOOP;
END;
