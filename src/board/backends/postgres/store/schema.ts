/**
 * The schema of boards: its migrations, the names of its locks and notifications, and the row of a board.
 *
 * The operations of a board are functions of the database. Each call is one statement: one round trip and one transaction,
 * which no client can leave open. Within a function, each statement sees what was committed before *it*: the default isolation.
 *
 * Each function takes several elements and returns an answer for each. An element that is refused is omitted from the group
 * instead of raising an error, which would roll back the other elements.
 *
 * **Order of locks**, the same everywhere to avoid deadlocks: the session's row, the table of boards (the gate), resources by
 * lock number, jobs by id, flows of logbooks by number, the jobs that depend on these by id, keys of limits, followers by job and session, batches by number. A session's
 * row is locked FOR KEY SHARE: it cannot be deleted meanwhile, but heartbeats can update it.
 *
 * **Names** are resolved in Postgres' own schema only (`search_path`). Otherwise a role that may create functions in `public`
 * could have its functions called instead of Postgres' own, as the user of the board (CVE-2018-1058).
 */
import { IncompatibleVersion, NotFound } from '../../../../core/errors.ts'
import type { Logger } from '../../../../core/log.ts'
import { fillScript } from '../../../../core/script-file.ts'
import {
  advisoryClass,
  type ConcurrentIndex,
  encodeText,
  type Migrations,
  migrate,
  type SqlDriver,
  warnOfForeignOwner,
} from '../../../../postgres/index.ts'
import { MAX_ENDED_BATCHES } from '../../../model/job-batch.ts'

/** The files with functions, in the order in which they are created: a function may call functions of files before its own. */
const FUNCTION_FILES = (
  'changes receipts dependencies history callbacks batches sessions keys posting limits claiming settling trash requests ' +
  'sections queues following notifying records recorded'
).split(' ')

/**
 * Returns the numbered migration steps. A released step never changes; changes are made in a new step. The functions are kept
 * once, in their present form, in one step after all steps that change tables. A change of a function moves them into a new
 * last step and leaves an empty step in their former place, so that every schema receives them. Parameters and columns of results keep their
 * names: Postgres does not replace a function by one with others, and processes of an older release read the columns by them.
 */
export function boardMigrations(schema: string): Migrations {
  const lockClass = sessionLockClass(schema)
  const values = {
    SCHEMA: schema,
    CHANNEL: channelName(schema, ''),
    LOCK_CLASS: String(lockClass),
    UNSIGNED_LOCK_CLASS: String(lockClass >>> 0),
    RESOURCE_CLASS: String(resourceLockClass(schema)),
    MAX_ENDED_BATCHES: String(MAX_ENDED_BATCHES),
  }
  const fill = (file: string) => fillScript(import.meta.url, file, values)
  const functions = FUNCTION_FILES.map((name) => fill(`../functions/${name}.sql`)).join('\n')
  return {
    schema,
    part: 'board',
    steps: [
      fill('../migrations/1-tables.sql'),
      fill('../migrations/2-added-columns.sql'),
      FUNCTIONS_MOVED,
      fill('../migrations/3-followers.sql'),
      FUNCTIONS_MOVED,
      fill('../migrations/4-records.sql'),
      FUNCTIONS_MOVED,
      fill('../migrations/5-limits.sql'),
      FUNCTIONS_MOVED,
      fill('../migrations/6-dependencies.sql'),
      FUNCTIONS_MOVED,
      fill('../migrations/7-keys.sql'),
      FUNCTIONS_MOVED,
      fill('../migrations/8-batches.sql'),
      FUNCTIONS_MOVED,
      fill('../migrations/9-rates.sql'),
      FUNCTIONS_MOVED,
      INDEX_MOVED,
      FUNCTIONS_MOVED,
      fill('../migrations/11-ended-backends.sql'),
      FUNCTIONS_MOVED,
      FUNCTIONS_MOVED,
      fill('../migrations/12-notified-sessions.sql'),
      fill('../migrations/13-pruned-changes.sql'),
      fill('../migrations/14-watched-sessions.sql'),
      FUNCTIONS_MOVED,
      fill('../migrations/15-queues.sql'),
      fill('../migrations/16-queues-of-changes.sql'),
      FUNCTIONS_MOVED,
      FUNCTIONS_MOVED,
      FUNCTIONS_MOVED,
      functions,
    ],
    lastMandatory: LAST_MANDATORY_STEP,
    indexes: INDEXES,
  }
}

/** A step that contained the functions in an earlier release. */
const FUNCTIONS_MOVED = 'NULL;'
/** A step that contained an index which is one of {@link INDEXES} now. */
const INDEX_MOVED = 'NULL;'

/**
 * The last step that a release must know to work on a board. All later steps only add, and leave the signatures of functions as they are, so processes
 * of an older release work with them. Raise it to the number of a step for which this is not true: then older releases refuse the schema.
 */
const LAST_MANDATORY_STEP = 22

/** The indexes that are built beside the work of the board. Nothing but the speed of some reads depends on them. */
const INDEXES: readonly ConcurrentIndex[] = [
  // A job of the trash is found by its uuid in one step, however long the trash is.
  { name: 'trash_by_uuid', table: 'trash', definition: '(uuid, board)' },
  // The claim order. The former index had the number itself, and Postgres sometimes found jobs by their numbers with it: see `functions/sections.sql`.
  { name: 'jobs_in_turn', table: 'jobs', definition: '(board, rank, (id + 0), due_at)', replaces: 'jobs_in_order' },
  // The head of a queue, and its next delayed jobs, are found without reading the jobs of other queues. Plain jobs are in none of these indexes.
  { name: 'jobs_in_queues', table: 'jobs', definition: '(board, queue, rank, id) WHERE queue IS NOT NULL' },
  {
    name: 'jobs_that_rest_in_queues',
    table: 'jobs',
    definition: "(board, queue, due_at) WHERE queue IS NOT NULL AND due_at > '-infinity'",
  },
]

/** Returns the first key of the advisory locks of sessions; the second key identifies the session. */
export function sessionLockClass(schema: string): number {
  return advisoryClass(`session ${schema}`)
}

/** Returns the first key of the advisory locks by which claims that want the same resource come one after another. */
export function resourceLockClass(schema: string): number {
  return advisoryClass(`resources ${schema}`)
}

/** Returns the channel for notifications of one board, by the board's number. */
export function channelName(schema: string, board: number | string): string {
  return `jobboard_${(advisoryClass(schema) >>> 0).toString(36)}_${board}`
}

/** Returns the channel for notifications of jobs that a session follows. */
export function sessionChannel(schema: string, board: number, session: number): string {
  return `${channelName(schema, board)}_${session}`
}

/** Returns the channel for notifications of batches whose status has changed. */
export function batchesChannel(schema: string, board: number): string {
  return `${channelName(schema, board)}_b`
}

/** Returns the channel for notifications of changed records. */
export function recordsChannel(schema: string, board: number): string {
  return `${channelName(schema, board)}_r`
}

// --- The row of a board -------------------------------------------------------------------------------------------

const BOARD_FORMAT = 1
/** The oldest server version with `pg_current_snapshot`, as `server_version_num`. */
const MIN_SERVER_VERSION = 130_000

export interface BoardRowOptions {
  readonly schema: string
  readonly name: string
  /** Whether a missing board is created. */
  readonly create?: boolean | undefined
  readonly log?: Logger | undefined
}

interface BoardRow {
  readonly number: number
  readonly paused: boolean
  /** The indexes of the schema that are to be built in the background. */
  readonly missingIndexes: readonly ConcurrentIndex[]
}

/**
 * Returns the row of the board with this name, and creates it if it is missing. Takes several round trips, also for an existing board.
 *
 * @throws NotFound with `create: false`; IncompatibleVersion if a newer release made the board, or if the server is too old
 */
export async function openBoardRow(
  driver: SqlDriver,
  { schema, name, create = true, log }: BoardRowOptions,
): Promise<BoardRow> {
  const query = "SELECT current_setting('server_version_num') AS version, to_regclass($1) IS NOT NULL AS there"
  const [server] = (await driver.query(query, [`${schema}.boards`])).rows
  if (Number(server?.['version']) < MIN_SERVER_VERSION)
    throw new IncompatibleVersion(
      `boards need Postgres 13 or newer, this server is older (${server?.['version']}); upgrade it`,
    )
  if (!create && server?.['there'] !== true) throw boardNotFoundError(schema, name)
  const missingIndexes = await migrate(driver, boardMigrations(schema))
  const find = () => driver.query(`SELECT id, format, paused FROM ${schema}.boards WHERE name = $1`, [encodeText(name)])
  let [row] = (await find()).rows
  if (!row && create) {
    const insert = `INSERT INTO ${schema}.boards (name, format) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`
    await driver.query(insert, [encodeText(name), BOARD_FORMAT])
    row = (await find()).rows[0]
  }
  if (!row) throw boardNotFoundError(schema, name)
  if (Number(row['format']) > BOARD_FORMAT)
    throw new IncompatibleVersion(
      `board ${name} has format ${row['format']}, this release supports ${BOARD_FORMAT}; upgrade jobboard`,
    )
  await warnOfForeignOwner(driver, { schema, log })
  return { number: Number(row['id']), paused: row['paused'] === true, missingIndexes }
}

function boardNotFoundError(schema: string, name: string): NotFound {
  return new NotFound(`there is no board ${name} in schema ${schema}; check the URI, or post a job to make one`)
}
