-- Adds to each session, in the schema SCHEMA, whether it is to be notified of changes: see functions/notifying.sql.

-- Names are resolved in Postgres' own schema only: see schema.ts. The setting ends with the transaction.
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

-- The sessions of older releases rely on notifications, and do not know the column.
ALTER TABLE :SCHEMA.sessions ADD COLUMN IF NOT EXISTS notified boolean NOT NULL DEFAULT true;
CREATE INDEX IF NOT EXISTS sessions_to_notify ON :SCHEMA.sessions (board) WHERE notified;

-- log_change reads the column for every change, as the role that makes it. So each role that may record changes may read it.
DECLARE
  v_acl aclitem[];
  v_role oid;
BEGIN
  SELECT coalesce(relacl, acldefault('r', relowner)) INTO v_acl FROM pg_class WHERE oid = ':SCHEMA.changes'::regclass;
  -- A right may be of the table, or of its columns.
  FOR v_role IN SELECT DISTINCT grantee FROM (
    SELECT grantee, privilege_type FROM aclexplode(v_acl)
    UNION ALL
    SELECT a.grantee, a.privilege_type FROM pg_attribute c, aclexplode(c.attacl) a WHERE c.attrelid = ':SCHEMA.changes'::regclass
  ) AS granted WHERE privilege_type = 'INSERT'
    AND grantee <> (SELECT relowner FROM pg_class WHERE oid = ':SCHEMA.sessions'::regclass) LOOP
    EXECUTE format('GRANT SELECT (board, notified) ON :SCHEMA.sessions TO %s',
      CASE WHEN v_role = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_role)) END);
  END LOOP;
END;
