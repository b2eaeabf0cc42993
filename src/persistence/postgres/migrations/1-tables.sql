-- The tables of the logbooks, in the schema SCHEMA. Values that programs and people search for have a column of their own;
-- results, failures and meta are in body and meta as in other backends (msgpack), because JSON would not preserve them.
--
-- - flows.term counts the acquires of a flow: a write must name the newest. flows.writes counts the writes, so that a write
--   whose answer was lost is not done twice.
-- - No index has a column that a write changes, and pages have free space (fillfactor): Postgres then updates in place,
--   without changing an index.

CREATE TABLE :SCHEMA.books (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uuid text COLLATE "C" NOT NULL UNIQUE,
  name text NOT NULL,
  meta bytea NOT NULL,
  revision bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX books_by_name ON :SCHEMA.books USING hash (name);

CREATE TABLE :SCHEMA.flows (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  book bigint NOT NULL REFERENCES :SCHEMA.books ON DELETE CASCADE,
  uuid text COLLATE "C" NOT NULL,
  name text NOT NULL,
  version text NOT NULL,
  state text NOT NULL,
  meta bytea NOT NULL,
  states jsonb NOT NULL,
  run bigint NOT NULL,
  claim text NOT NULL,
  term bigint NOT NULL,
  writes bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  UNIQUE (book, uuid)
) WITH (fillfactor = 70);

CREATE TABLE :SCHEMA.atoms (
  flow bigint NOT NULL REFERENCES :SCHEMA.flows ON DELETE CASCADE,
  name text COLLATE "C" NOT NULL,
  position integer NOT NULL,
  kind text NOT NULL,
  version text NOT NULL,
  state text NOT NULL,
  intention text NOT NULL,
  body bytea NOT NULL,
  states jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (flow, name)
) WITH (fillfactor = 70);
