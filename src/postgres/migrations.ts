/**
 * Tables, made and changed by numbered steps that only go forward.
 *
 * Each step is one transaction under a lock that all processes share, and records its number in the same transaction. Two
 * processes that start at once do each step once, and a process that dies during a step leaves nothing of it. A schema that
 * is up to date is only read: a user without the right to create tables can work with it.
 *
 * **A step does not wait long for a table.** While it waits behind a transaction that uses the table, everybody who uses the table waits behind the
 * step. So a step gives up after {@link LOCK_TIMEOUT_MS}, undoes what it has done, and is tried again after a pause.
 */
import { retry } from '../core/async/retry.ts'
import { IncompatibleVersion } from '../core/errors.ts'
import type { SqlDriver } from './connection.ts'
import { PostgresError, toPostgresError } from './errors.ts'
import { quoteIdentifier } from './location.ts'

export interface Migrations {
  readonly schema: string
  /** The part that owns the tables: each part has its own step numbers. */
  readonly part: 'logbooks' | 'board'
  /** Step by step, from number 1; what was released is never changed. */
  readonly steps: readonly string[]
}

/** The longest wait of a step for a lock. */
const LOCK_TIMEOUT_MS = 100
/** The pauses between the tries of a step, and the time after which it fails. */
const TRIES = { firstPauseMs: 200, maxPauseMs: 2_000, limitMs: 60_000 }
const LOCK_NOT_AVAILABLE = '55P03'

/** An arbitrary number that no other program is likely to lock. */
const MIGRATION_LOCK_KEY = 7_306_352_091

/**
 * Brings the schema to the newest step of this release. Takes two round trips if it is up to date.
 *
 * @param options.limitMs the time after which a step fails that waits for tables; a minute by default
 * @throws IncompatibleVersion when a newer release was there before; PostgresError, also if other transactions use a table for too long
 */
export async function migrate(
  driver: SqlDriver,
  migrations: Migrations,
  { limitMs = TRIES.limitMs }: { readonly limitMs?: number } = {},
): Promise<void> {
  const { schema, part, steps } = migrations
  const version = await readKnownVersion(driver, migrations)
  for (let number = version + 1; number <= steps.length; number += 1) {
    const step = () => driver.query(stepStatement(migrations, number), [])
    await retry(step, { ...TRIES, limitMs, isRetryable: isLocked }).catch((cause: unknown) => {
      if (!isLocked(cause)) throw cause
      const message =
        `the ${part} in schema ${schema} need migration step ${number}, but other transactions use its tables for more than ${limitMs / 1_000} s; ` +
        'end them (pg_stat_activity lists them), and start again'
      const options = {
        cause,
        sqlState: LOCK_NOT_AVAILABLE,
        retryable: true,
        outcome: 'refused',
        fault: 'place',
      } as const
      throw new PostgresError(message, options)
    })
  }
}

function isLocked(error: unknown): boolean {
  return toPostgresError(error).sqlState === LOCK_NOT_AVAILABLE
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
  PERFORM set_config('lock_timeout', '${LOCK_TIMEOUT_MS}', true);
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
