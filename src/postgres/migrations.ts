/**
 * Tables, made and changed by numbered steps that only go forward.
 *
 * Each step is one transaction under a lock that all processes share, and records its number in the same transaction. Two
 * processes that start at once do each step once, and a process that dies during a step leaves nothing of it. A schema that
 * is up to date is only read: a user without the right to create tables can work with it.
 */
import { IncompatibleVersion } from '../core/errors.ts'
import type { SqlDriver } from './connection.ts'
import { quoteIdentifier } from './location.ts'

export interface Migrations {
  readonly schema: string
  /** The part that owns the tables: each part has its own step numbers. */
  readonly part: 'logbooks' | 'board'
  /** Step by step, from number 1; what was released is never changed. */
  readonly steps: readonly string[]
}

/** An arbitrary number that no other program is likely to lock. */
const MIGRATION_LOCK_KEY = 7_306_352_091

/**
 * Brings the schema to the newest step of this release. Takes two round trips if it is up to date.
 *
 * @throws IncompatibleVersion when a newer release was there before
 */
export async function migrate(driver: SqlDriver, migrations: Migrations): Promise<void> {
  const { steps } = migrations
  const version = await readKnownVersion(driver, migrations)
  for (let number = version + 1; number <= steps.length; number += 1) {
    await driver.query(stepStatement(migrations, number), [])
  }
}

/**
 * Returns whether the tables exist. Creates and changes nothing.
 *
 * @throws IncompatibleVersion when they were made by another release
 */
export async function areMigrated(driver: SqlDriver, migrations: Migrations): Promise<boolean> {
  const { schema, part, steps } = migrations
  const version = await readKnownVersion(driver, migrations)
  if (version === 0 || version === steps.length) return version > 0
  throw new IncompatibleVersion(
    `the ${part} in schema ${schema} were made by an older release (step ${version} of ${steps.length}); a conductor of ` +
      'this release brings them up to date when it starts',
  )
}

async function readKnownVersion(driver: SqlDriver, migrations: Migrations): Promise<number> {
  const { schema, part, steps } = migrations
  const version = await versionQuery(driver, migrations)
  if (version <= steps.length) return version
  const known = `this release knows ${steps.length}`
  throw new IncompatibleVersion(
    `the ${part} in schema ${schema} were made by a newer release (step ${version}, ${known}); update jobboard`,
  )
}

async function versionQuery(driver: SqlDriver, { schema, part }: Migrations): Promise<number> {
  const question = `SELECT to_regclass($1) IS NOT NULL AS there, current_setting('server_encoding') AS encoding`
  const found = await driver.query(question, [`${quoteIdentifier(schema)}.migrations`])
  const encoding = found.rows[0]?.['encoding'] ?? 'UTF8'
  if (encoding !== 'UTF8')
    throw new IncompatibleVersion(
      `the database is encoded in ${encoding}, which has not all characters; create one with ENCODING 'UTF8' TEMPLATE template0`,
    )
  if (found.rows[0]?.['there'] !== true) return 0
  const newest = `SELECT max(version) AS version FROM ${quoteIdentifier(schema)}.migrations WHERE part = $1`
  const { rows } = await driver.query(newest, [part])
  return Number(rows[0]?.['version'] ?? 0)
}

/** Returns one statement, and so one transaction on any driver. It checks first: `IF NOT EXISTS` needs the right to create. */
function stepStatement({ schema, part, steps }: Migrations, number: number): string {
  return `DO $migration$
BEGIN
  PERFORM pg_advisory_xact_lock(${MIGRATION_LOCK_KEY});
  IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = '${schema}') THEN
    CREATE SCHEMA ${quoteIdentifier(schema)};
  END IF;
  IF to_regclass('${quoteIdentifier(schema)}.migrations') IS NULL THEN
    CREATE TABLE ${quoteIdentifier(schema)}.migrations (
      part text NOT NULL,
      version integer NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (part, version)
    );
  END IF;
  IF NOT EXISTS (SELECT FROM ${quoteIdentifier(schema)}.migrations WHERE part = '${part}' AND version >= ${number}) THEN
    ${steps[number - 1]}
    INSERT INTO ${quoteIdentifier(schema)}.migrations (part, version) VALUES ('${part}', ${number});
  END IF;
END
$migration$`
}
