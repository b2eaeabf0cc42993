/** Logbooks in Postgres: `postgres://user@host/database`, or over a driver of one's own. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'
import { type Duration, milliseconds } from '../../core/time.ts'
import type { ResourceUri } from '../../core/uri.ts'
import { PostgresPool, postgresPlace, type SqlDriver, schemaName } from '../../postgres/index.ts'
import type { Persistence } from '../persistence.ts'
import { SqlPersistence } from './sql-persistence.ts'

/** Longer than a database takes to be restarted, or to fail over. */
const RETRY_FOR = '30s'

/** @throws InvalidArgument for an address, or a parameter, that means nothing */
export function sqlPersistence(uri: ResourceUri): Persistence {
  const place = postgresPlace(uri, ['retryFor'])
  const retryFor = milliseconds(uri.parameters.get('retryFor') ?? RETRY_FOR, `${uri.printable}: retryFor`)
  const driver = new PostgresPool(place)
  const { schema } = place
  return new SqlPersistence({ uri: uri.printable, driver, schema, retryFor, closeDriver: () => driver.close() })
}

export interface DriverPersistenceOptions {
  /** Where the tables are; made when they are missing. `jobboard` by default. */
  readonly schema?: string
  /** How long a database that is away is waited for, before what was asked fails; 30 s by default. */
  readonly retryFor?: Duration
}

/**
 * Opens logbooks over a Postgres driver of one's own, which is left open.
 *
 * @throws InvalidArgument for options that mean nothing; StorageFailure when the database cannot be used
 * @example await using persistence = await openPersistenceOver(new pg.Pool({ host: 'db' }), { schema: 'jobs' })
 */
export async function openPersistenceOver(
  driver: SqlDriver,
  options: DriverPersistenceOptions = {},
): Promise<Persistence> {
  if (typeof driver?.query !== 'function')
    throw new InvalidArgument('openPersistenceOver takes a driver of Postgres, such as new pg.Pool()')
  assertOptions(options, { schema: true, retryFor: true }, 'openPersistenceOver')
  const schema = schemaName(options.schema ?? 'jobboard')
  const retryFor = milliseconds(options.retryFor ?? RETRY_FOR, 'retryFor')
  const persistence = new SqlPersistence({ uri: `postgres: (schema ${schema})`, driver, schema, retryFor })
  await persistence.open()
  return persistence
}
