-- Adds the tables of limits, in the schema SCHEMA: see functions/limits.sql.
--
-- - boards.limits is the revision of the limits: each change of a record by which claims are limited increases it.
-- - limit_keys has a row for each key that claims take from, which they lock: its arrival time in milliseconds since 1970.
-- - slots has a row for each slot that a claimed job holds.

-- Names are resolved in Postgres' own schema only: see schema.ts. The setting ends with the transaction.
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

ALTER TABLE :SCHEMA.boards ADD COLUMN IF NOT EXISTS limits integer NOT NULL DEFAULT 0;
CREATE TABLE IF NOT EXISTS :SCHEMA.limit_keys (
  board integer NOT NULL,
  key text COLLATE "C" NOT NULL,
  arrival float8 NOT NULL DEFAULT 0,
  PRIMARY KEY (key, board)
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS :SCHEMA.slots (
  board integer NOT NULL,
  key text COLLATE "C" NOT NULL,
  job bigint NOT NULL,
  PRIMARY KEY (key, board, job)
);
CREATE INDEX IF NOT EXISTS slots_by_job ON :SCHEMA.slots (job, board);

-- Each role that may change jobs may claim them. The role that migrates need not be the owner of the tables.
DECLARE
  v_owner oid;
  v_acl aclitem[];
  v_role oid;
  v_table text;
BEGIN
  SELECT relowner, coalesce(relacl, acldefault('r', relowner)) INTO v_owner, v_acl
  FROM pg_class WHERE oid = ':SCHEMA.jobs'::regclass;
  FOREACH v_table IN ARRAY ARRAY['limit_keys', 'slots'] LOOP
    EXECUTE format('ALTER TABLE :SCHEMA.%I OWNER TO %I', v_table, pg_get_userbyid(v_owner));
    FOR v_role IN SELECT DISTINCT grantee FROM aclexplode(v_acl) WHERE privilege_type = 'UPDATE' AND grantee <> v_owner LOOP
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON :SCHEMA.%I TO %s', v_table,
        CASE WHEN v_role = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_role)) END);
    END LOOP;
  END LOOP;
END;
