-- Adds the table of windows of keys, in the schema SCHEMA: see functions/keys.sql.
--
-- key_windows has a row for each key that was posted with a window: the job of that post, and the time until which no other job takes the key. A row
-- whose time has passed means the same as none.

-- Names are resolved in Postgres' own schema only: see schema.ts. The setting ends with the transaction.
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

CREATE TABLE IF NOT EXISTS :SCHEMA.key_windows (
  board integer NOT NULL,
  key bytea NOT NULL,
  job bigint NOT NULL,
  uuid text COLLATE "C" NOT NULL,
  until timestamptz NOT NULL,
  PRIMARY KEY (key, board)
);
CREATE INDEX IF NOT EXISTS key_windows_by_end ON :SCHEMA.key_windows (board, until);

-- Each role that may change jobs may post them. The role that migrates need not be the owner of the tables.
DECLARE
  v_owner oid;
  v_acl aclitem[];
  v_role oid;
BEGIN
  SELECT relowner, coalesce(relacl, acldefault('r', relowner)) INTO v_owner, v_acl
  FROM pg_class WHERE oid = ':SCHEMA.jobs'::regclass;
  EXECUTE format('ALTER TABLE :SCHEMA.key_windows OWNER TO %I', pg_get_userbyid(v_owner));
  FOR v_role IN SELECT DISTINCT grantee FROM aclexplode(v_acl) WHERE privilege_type = 'UPDATE' AND grantee <> v_owner LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON :SCHEMA.key_windows TO %s',
      CASE WHEN v_role = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_role)) END);
  END LOOP;
END;
