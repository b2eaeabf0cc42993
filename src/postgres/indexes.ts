/**
 * Builds indexes beside the work of a board. Such an index makes reads faster, and nothing needs it to be correct: it is never unique.
 *
 * A plain CREATE INDEX blocks all writers of the table. CREATE INDEX CONCURRENTLY blocks none, but it waits itself: for each
 * transaction that has written to the table, and for each older snapshot in the database, such as a dump's. That can take an hour, and it leaves
 * an invalid index if it is interrupted. So there are two ways:
 *
 * - A small table to which no transaction writes at that moment gets its index at once, in a transaction. Most tables are small, and all tables of a new
 *   schema are empty.
 * - For any other table, the process starts without the index, and builds it in the background ({@link finishIndexes}). One process builds: the holder of
 *   an advisory lock. The others look again until the index is there, so the work of a process that dies is finished by another one.
 *
 * A process that ends while it waits leaves the statement to the server, which finishes it.
 */
import { onAbort } from '../core/async/abort.ts'
import { retryUntilAborted } from '../core/async/retry.ts'
import { asError } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { advisoryClass, MIGRATION_LOCK_KEY } from './advisory-keys.ts'
import { PostgresConnection, type SqlDriver } from './connection.ts'
import { type PostgresLocation, quoteIdentifier } from './location.ts'

export interface ConcurrentIndex {
  readonly name: string
  readonly table: string
  /** What follows the name of the table in CREATE INDEX, such as `(uuid, board)`. */
  readonly definition: string
  /** The name of a former index, which is dropped when this one can be used. */
  readonly replaces?: string
}

/** The size of a table, in bytes, up to which an index is built in a few milliseconds. */
const SMALL_TABLE_BYTES = 2 ** 20
/** The time limit of one statement that builds an index and waits for open transactions: a day. */
const BUILD_TIMEOUT_MS = 86_400_000
/** The pauses before searches for missing indexes. The first pause is random: processes that start together do not search together. */
const LOOKS = { firstPauseMs: 1_000, maxPauseMs: 300_000 }

/** An index that a schema does not have, or has only as invalid, or that still has to replace another one. */
interface MissingIndex extends ConcurrentIndex {
  /** Whether the index has to be built; false if only the former one has to be dropped. */
  readonly isMissing: boolean
  /** Whether the index exists and cannot be used: its build was interrupted, or is under way. */
  readonly isInvalid: boolean
  /** Whether an index of its table is being built, by hand for example: to drop an invalid index now would undo this, or end in a deadlock. */
  readonly isBeingBuilt: boolean
}

/** Returns the missing indexes that this role can build: it must own the table, and have the right to create in the schema. */
export async function findMissingIndexes(
  driver: SqlDriver,
  schema: string,
  indexes: readonly ConcurrentIndex[],
): Promise<MissingIndex[]> {
  if (indexes.length === 0) return []
  const known = indexes
    .map(({ name, table, replaces = '' }) => `('${name}'::name, '${table}'::name, '${replaces}'::name)`)
    .join(', ')
  const text = `SELECT i.name, x.indisvalid IS NOT TRUE AS missing, c.oid IS NOT NULL AND x.indisvalid IS NOT TRUE AS invalid,
    EXISTS (SELECT FROM pg_catalog.pg_stat_progress_create_index p WHERE p.relid = t.oid) AS building
  FROM (VALUES ${known}) AS i(name, "table", former)
    JOIN pg_catalog.pg_namespace n ON n.nspname = $1::name
    JOIN pg_catalog.pg_class t ON t.relnamespace = n.oid AND t.relname = i."table"
    LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = i.name
    LEFT JOIN pg_catalog.pg_index x ON x.indexrelid = c.oid
    LEFT JOIN pg_catalog.pg_class f ON f.relnamespace = n.oid AND f.relname = i.former
  WHERE (x.indisvalid IS NOT TRUE OR f.oid IS NOT NULL)
    AND pg_catalog.pg_has_role(t.relowner, 'USAGE'::text) AND pg_catalog.has_schema_privilege(n.oid, 'CREATE'::text)`
  const { rows } = await driver.query(text, [schema])
  const found = new Map(rows.map((row) => [row['name'], row]))
  return indexes.flatMap((index) => {
    const row = found.get(index.name)
    return row
      ? [
          {
            ...index,
            isMissing: row['missing'] === true,
            isInvalid: row['invalid'] === true,
            isBeingBuilt: row['building'] === true,
          },
        ]
      : []
  })
}

/**
 * Builds the indexes of small tables to which no transaction writes at this moment, and drops the indexes that they replace, if no transaction uses the
 * table at all. Waits for the migration lock, but for no table. Writers wait for some milliseconds, and readers where an index is replaced.
 *
 * An index that is built at once can be unusable for a time although it is valid (`indcheckxmin`): if the table has a version of a row that an open
 * transaction anywhere in the database may still read, no newer snapshot uses the index until that transaction ends. Such a build is undone, so that the
 * former index stays, and the index is left to the background.
 */
export async function buildSmallIndexes(
  driver: SqlDriver,
  schema: string,
  indexes: readonly ConcurrentIndex[],
): Promise<void> {
  const builds = indexes.map(({ name, table, definition, replaces }) => {
    const quoted = quoteIdentifier(schema)
    const qualified = `${quoted}.${table}`
    // A drop needs the stronger lock.
    const mode = replaces === undefined ? 'SHARE' : 'ACCESS EXCLUSIVE'
    const built = `FROM pg_index WHERE indexrelid = to_regclass('${quoted}.${name}')`
    // An index of this name may be there and invalid.
    const isValid = `(SELECT indisvalid ${built})`
    const drop =
      replaces === undefined ? '' : `\n      IF ${isValid} THEN DROP INDEX IF EXISTS ${quoted}.${replaces}; END IF;`
    return `
  BEGIN
    IF pg_relation_size('${qualified}') <= ${SMALL_TABLE_BYTES} THEN
      LOCK TABLE ${qualified} IN ${mode} MODE NOWAIT;
      CREATE INDEX IF NOT EXISTS ${name} ON ${qualified} ${definition};
      IF (SELECT indcheckxmin ${built}) THEN RAISE lock_not_available; END IF;${drop}
    END IF;
  EXCEPTION WHEN lock_not_available THEN NULL;
  END;`
  })
  await driver.query(
    `DO $indexes$
BEGIN
  -- Otherwise a function of another schema may be called, with the rights of this user.
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  PERFORM pg_advisory_xact_lock(${MIGRATION_LOCK_KEY});
  -- Otherwise, reading the size of a table would wait for a session that has locked the table exclusively, such as VACUUM FULL.
  PERFORM pg_catalog.set_config('lock_timeout', '100ms', true);${builds.join('')}
END
$indexes$`,
    [],
  )
}

interface FinishOptions {
  readonly location: PostgresLocation
  readonly log?: Logger | undefined
  /** Ends the work of this process; a statement that is under way is left to the server. */
  readonly signal: AbortSignal
  /** The limits of the pauses, in milliseconds; at first a second, later five minutes. */
  readonly pauses?: { readonly firstPauseMs: number; readonly maxPauseMs: number }
}

/**
 * Builds missing indexes in the background, until all are there, and drops the indexes that they replace. Not for a connection behind a transaction pooler: the lock belongs to the session.
 *
 * @returns a promise that is never rejected
 */
export async function finishIndexes(indexes: readonly ConcurrentIndex[], options: FinishOptions): Promise<void> {
  const { location, log, signal, pauses = LOOKS } = options
  let hasFailed = false
  await retryUntilAborted(() => buildMissing(indexes, options), {
    ...pauses,
    signal,
    failuresBefore: 1,
    onRetry: (error) => {
      if (error === BUILT_ELSEWHERE || hasFailed) return
      hasFailed = true
      const { schema } = location
      log?.warn({ schema, err: asError(error) }, `indexes of schema ${schema} could not be built; this is tried again`)
    },
  }).catch(() => undefined)
}

const BUILT_ELSEWHERE = new Error('another session builds the indexes')

/** @throws BUILT_ELSEWHERE; the driver's errors */
async function buildMissing(
  indexes: readonly ConcurrentIndex[],
  { location, log, signal }: FinishOptions,
): Promise<void> {
  const { schema } = location
  const connection = await PostgresConnection.open(location, { signal, statementTimeoutMs: BUILD_TIMEOUT_MS })
  const forget = onAbort(signal, () => connection.disconnect(signal.reason))
  try {
    if ((await findMissingIndexes(connection, schema, indexes)).length === 0) return
    // The lock ends with the connection. Without it, two builds for one table could wait for each other.
    const lock = `SELECT pg_try_advisory_lock(${advisoryClass(`indexes ${schema}`)}, 0) AS mine`
    if ((await connection.query(lock, [])).rows[0]?.['mine'] !== true) throw BUILT_ELSEWHERE
    for (const index of await findMissingIndexes(connection, schema, indexes)) {
      const { name, table, definition, replaces, isMissing, isInvalid, isBeingBuilt } = index
      if (isBeingBuilt) throw BUILT_ELSEWHERE
      const quoted = quoteIdentifier(schema)
      const drop = (dropped: string) => connection.query(`DROP INDEX CONCURRENTLY IF EXISTS ${quoted}.${dropped}`, [])
      if (isInvalid) await drop(name)
      if (isMissing) {
        log?.info({ schema, index: name }, `index ${name} of ${table} is being built; the board works meanwhile`)
        await connection.query(`CREATE INDEX CONCURRENTLY ${name} ON ${quoted}.${table} ${definition}`, [])
        log?.info({ schema, index: name }, `index ${name} of ${table} is built`)
      }
      if (replaces !== undefined) await drop(replaces)
    }
  } finally {
    forget()
    await connection.close()
  }
}
