-- Adds the table of records, in the schema SCHEMA: named values of a board, such as schedules: see functions/records.sql.

-- Names are resolved in Postgres' own schema only: see schema.ts. The setting ends with the transaction.
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

-- Revisions come from one sequence: that of a record which is removed and created again never returns.
CREATE SEQUENCE IF NOT EXISTS :SCHEMA.record_revisions;
CREATE TABLE IF NOT EXISTS :SCHEMA.records (
  board integer NOT NULL,
  kind text NOT NULL,
  digest bytea NOT NULL,
  id text NOT NULL,
  value bytea NOT NULL,
  revision bigint NOT NULL DEFAULT nextval(':SCHEMA.record_revisions'),
  PRIMARY KEY (board, kind, digest)
);

-- Each role that may change jobs may change records. The role that migrates need not be the owner of the tables.
DECLARE
  v_owner oid;
  v_acl aclitem[];
  v_role oid;
BEGIN
  SELECT relowner, coalesce(relacl, acldefault('r', relowner)) INTO v_owner, v_acl
  FROM pg_class WHERE oid = ':SCHEMA.jobs'::regclass;
  EXECUTE format('ALTER TABLE :SCHEMA.records OWNER TO %I', pg_get_userbyid(v_owner));
  EXECUTE format('ALTER SEQUENCE :SCHEMA.record_revisions OWNER TO %I', pg_get_userbyid(v_owner));
  FOR v_role IN SELECT DISTINCT grantee FROM aclexplode(v_acl) WHERE privilege_type = 'UPDATE' AND grantee <> v_owner LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON :SCHEMA.records TO %s',
      CASE WHEN v_role = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_role)) END);
    EXECUTE format('GRANT USAGE ON SEQUENCE :SCHEMA.record_revisions TO %s',
      CASE WHEN v_role = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_role)) END);
  END LOOP;
END;
