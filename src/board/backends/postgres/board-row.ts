/** The board among those of its database: found by its name, made where it is missing. */
import { IncompatibleVersion, NotFound } from '../../../core/errors.ts'
import { encodeText, migrate, type SqlDriver } from '../../../postgres/index.ts'
import { boardMigrations } from './migrations.ts'

const BOARD_FORMAT = 1
/** The first whose snapshots can be asked for, as `server_version_num`. */
const MIN_SERVER_VERSION = 130_000

export interface BoardRowOptions {
  readonly schema: string
  readonly name: string
  /** False: a board that is not there is not made. */
  readonly create?: boolean
}

/**
 * Its number. Some round trips, where it is there already as well.
 *
 * @throws NotFound with `create: false`; IncompatibleVersion where a newer release has made it, or the server is too old
 */
export async function openBoardRow(
  driver: SqlDriver,
  { schema, name, create = true }: BoardRowOptions,
): Promise<number> {
  const look = "SELECT current_setting('server_version_num') AS version, to_regclass($1) IS NOT NULL AS there"
  const [server] = (await driver.query(look, [`${schema}.boards`])).rows
  if (Number(server?.['version']) < MIN_SERVER_VERSION)
    throw new IncompatibleVersion(
      `Postgres is older than 13 (${server?.['version']}), and cannot keep boards; upgrade it`,
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
      `board ${name} is of format ${row['format']}, this release knows ${BOARD_FORMAT}; upgrade it`,
    )
  return Number(row['id'])
}

function boardNotFoundError(schema: string, name: string): NotFound {
  return new NotFound(`there is no board ${name} in schema ${schema}; check the URI, or post a job to make one`)
}
