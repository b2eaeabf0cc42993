/** Finds the row of a board by its name, and creates it if it is missing. */
import { IncompatibleVersion, NotFound } from '../../../core/errors.ts'
import { encodeText, migrate, type SqlDriver } from '../../../postgres/index.ts'
import { boardMigrations } from './migrations.ts'

const BOARD_FORMAT = 1
/** The oldest server version with `pg_current_snapshot`, as `server_version_num`. */
const MIN_SERVER_VERSION = 130_000

export interface BoardRowOptions {
  readonly schema: string
  readonly name: string
  /** Whether a missing board is created. */
  readonly create?: boolean
}

/**
 * Returns the number of the board. Takes several round trips, also for an existing board.
 *
 * @throws NotFound with `create: false`; IncompatibleVersion if a newer release made the board, or if the server is too old
 */
export async function openBoardRow(
  driver: SqlDriver,
  { schema, name, create = true }: BoardRowOptions,
): Promise<number> {
  const query = "SELECT current_setting('server_version_num') AS version, to_regclass($1) IS NOT NULL AS there"
  const [server] = (await driver.query(query, [`${schema}.boards`])).rows
  if (Number(server?.['version']) < MIN_SERVER_VERSION)
    throw new IncompatibleVersion(
      `boards need Postgres 13 or newer, this server is older (${server?.['version']}); upgrade it`,
    )
  if (!create && server?.['there'] !== true) throw boardNotFoundError(schema, name)
  await migrate(driver, boardMigrations(schema))
  const find = () => driver.query(`SELECT id, format FROM ${schema}.boards WHERE name = $1`, [encodeText(name)])
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
  return Number(row['id'])
}

function boardNotFoundError(schema: string, name: string): NotFound {
  return new NotFound(`there is no board ${name} in schema ${schema}; check the URI, or post a job to make one`)
}
