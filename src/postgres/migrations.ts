/**
 * Makes and changes tables by numbered steps, which only go forward, and checks whether this release can work with them.
 *
 * Each step is one transaction under a lock that all processes share, and records its number in the same transaction. Two
 * processes that start at once do each step once, and a process that dies during a step leaves nothing of it. A schema that
 * is up to date is only read: a user without the right to create tables can work with it.
 *
 * **A step does not wait long for a table.** While it waits behind a transaction that uses the table, everybody who uses the table waits behind the step.
 * So a step gives up after {@link LOCK_TIMEOUT_MS}, undoes what it has done, and is tried again after a pause. This also ends a deadlock with a
 * transaction that has locked one table of the step and waits for another: the server would end one of the two only after a second.
 *
 * **Releases work side by side.** A step that only adds something is recorded under a name of its own (`board (additive)`), which older releases do not
 * look at: they work with the schema as it is, and do not put their own functions in place of the newer ones. A step that an older release cannot work
 * with is recorded as `board`: an older release refuses it.
 */
import { retry } from '../core/async/retry.ts'
import { IncompatibleVersion } from '../core/errors.ts'
import { MIGRATION_LOCK_KEY } from './advisory-keys.ts'
import type { SqlDriver } from './connection.ts'
import { PostgresError, toPostgresError } from './errors.ts'
import { buildSmallIndexes, type ConcurrentIndex, findMissingIndexes } from './indexes.ts'
import { quoteIdentifier } from './location.ts'

export interface Migrations {
  readonly schema: string
  /** The part that owns the tables: each part has its own step numbers. */
  readonly part: 'logbooks' | 'board'
  /** Step by step, from number 1; what was released is never changed. */
  readonly steps: readonly string[]
  /** The number of the last step after which a release cannot work that does not know it; all later steps only add something. By default the last step. */
  readonly lastMandatory?: number
  /** The indexes that are built beside the work: see `indexes.ts`. */
  readonly indexes?: readonly ConcurrentIndex[]
}

/** The longest wait of a step for a lock, in milliseconds. Others wait behind it for the same time, and need the rest of 0.1 s for their own work. */
const LOCK_TIMEOUT_MS = 50
/** The longest wait of a process for the tries of other processes. */
const TURN_TIMEOUT_MS = 10_000
/** The shortest time between two tries, of all processes together. */
const MIN_PAUSE_MS = 200
/** The pauses between the tries of a step, and the time after which it fails. */
const TRIES = { firstPauseMs: 200, maxPauseMs: 2_000, limitMs: 60_000 }
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Brings the schema to the newest step of this release. Leaves a newer schema as it is. Takes two round trips if it is up to date, and one more for a part
 * with concurrent indexes.
 *
 * @param options.limitMs the time after which a step that waits for tables fails; a minute by default
 * @returns the still missing indexes that this role can build
 * @throws IncompatibleVersion when a newer release has changed the schema so that this release cannot work with it; PostgresError, also if other
 * transactions use a table for too long
 */
export async function migrate(
  driver: SqlDriver,
  migrations: Migrations,
  { limitMs = TRIES.limitMs }: { readonly limitMs?: number } = {},
): Promise<readonly ConcurrentIndex[]> {
  const { schema, steps, indexes = [] } = migrations
  const version = await readUsableVersion(driver, migrations)
  for (let number = version + 1; number <= steps.length; number += 1)
    await runStep(driver, migrations, { number, limitMs })
  // A newer release may have other indexes, and builds them itself.
  if (version > steps.length) return []
  const missing = await findMissingIndexes(driver, schema, indexes)
  if (missing.length === 0) return []
  await buildSmallIndexes(driver, schema, missing)
  return findMissingIndexes(driver, schema, missing)
}

async function runStep(
  driver: SqlDriver,
  migrations: Migrations,
  { number, limitMs }: { readonly number: number; readonly limitMs: number },
): Promise<void> {
  const { part, schema } = migrations
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

function isLocked(error: unknown): boolean {
  return toPostgresError(error).sqlState === LOCK_NOT_AVAILABLE
}

/**
 * Returns whether the tables exist. Creates and changes nothing.
 *
 * @throws IncompatibleVersion when they were made by another release, with whose schema this one cannot work
 */
export async function areMigrated(driver: SqlDriver, migrations: Migrations): Promise<boolean> {
  const { schema, part, steps } = migrations
  const version = await readUsableVersion(driver, migrations)
  if (version === 0 || version >= steps.length) return version > 0
  throw new IncompatibleVersion(
    `the ${part} in schema ${schema} were made by an older release (step ${version} of ${steps.length}); a conductor of ` +
      'this release brings them up to date when it starts',
  )
}

/** Returns the number of the newest step, 0 without tables. @throws IncompatibleVersion for a step that this release must know, and does not */
async function readUsableVersion(driver: SqlDriver, migrations: Migrations): Promise<number> {
  const { schema, part, steps } = migrations
  const { newest, mandatory } = await readVersions(driver, migrations)
  if (mandatory <= steps.length) return newest
  const known = `this release knows ${steps.length}`
  throw new IncompatibleVersion(
    `the ${part} in schema ${schema} were made by a newer release (step ${mandatory}, ${known}); update jobboard`,
  )
}

async function readVersions(
  driver: SqlDriver,
  { schema, part }: Migrations,
): Promise<{ readonly newest: number; readonly mandatory: number }> {
  const question = `SELECT to_regclass($1) IS NOT NULL AS there, current_setting('server_encoding') AS encoding`
  const found = await driver.query(question, [`${quoteIdentifier(schema)}.migrations`])
  const encoding = found.rows[0]?.['encoding'] ?? 'UTF8'
  if (encoding !== 'UTF8')
    throw new IncompatibleVersion(
      `the database is encoded in ${encoding}, which has not all characters; create one with ENCODING 'UTF8' TEMPLATE template0`,
    )
  if (found.rows[0]?.['there'] !== true) return { newest: 0, mandatory: 0 }
  const versions = `SELECT max(version) AS newest, max(version) FILTER (WHERE part = $1) AS mandatory
    FROM ${quoteIdentifier(schema)}.migrations WHERE part = $1 OR part = $2`
  const { rows } = await driver.query(versions, [part, additive(part)])
  return { newest: Number(rows[0]?.['newest'] ?? 0), mandatory: Number(rows[0]?.['mandatory'] ?? 0) }
}

/** Returns the name under which steps are recorded that only add something. */
function additive(part: Migrations['part']): string {
  return `${part} (additive)`
}

/**
 * Returns one statement, and so one transaction on any driver. It checks what exists before it creates: `CREATE … IF NOT EXISTS` needs the right to create
 * even if nothing is created. A failed try keeps the migration lock for a moment. Otherwise the tries of many processes would follow each other at once,
 * and others who use the table would wait behind each of them.
 */
function stepStatement({ schema, part, steps, lastMandatory = steps.length }: Migrations, number: number): string {
  const recorded = number <= lastMandatory ? part : additive(part)
  return `DO $migration$
DECLARE
  is_locked boolean := false;
BEGIN
  PERFORM set_config('lock_timeout', '${TURN_TIMEOUT_MS}', true);
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
  IF NOT EXISTS (SELECT FROM ${quoteIdentifier(schema)}.migrations
    WHERE part IN ('${part}', '${additive(part)}') AND version >= ${number}) THEN
    BEGIN
      ${steps[number - 1]}
      INSERT INTO ${quoteIdentifier(schema)}.migrations (part, version) VALUES ('${recorded}', ${number});
    EXCEPTION WHEN lock_not_available THEN
      is_locked := true;
    END;
    IF is_locked THEN
      PERFORM pg_catalog.pg_sleep(${MIN_PAUSE_MS / 1_000});
      RAISE EXCEPTION 'a table of step ${number} is in use' USING ERRCODE = 'lock_not_available';
    END IF;
  END IF;
END
$migration$`
}
