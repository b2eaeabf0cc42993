/** Logbooks in Postgres: `postgres://user@host/database`, or over a driver of the caller. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertLogger, type Logger } from '../../core/log.ts'
import { assertOptions } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { type ResourceUri, readDurationParameter } from '../../core/uri.ts'
import { PostgresPool, parsePostgresLocation, postgresPlace, type SqlDriver, schemaName } from '../../postgres/index.ts'
import { RecordCodec } from '../codecs/atom-codec.ts'
import { CodecPersistence } from '../codecs/codec-persistence.ts'
import type { LogbookCodec } from '../codecs/codecs.ts'
import type { Persistence } from '../persistence.ts'
import { SqlPersistence } from './postgres-persistence.ts'

/** The default time limit: longer than a database takes to restart, or to fail over. */
const DEFAULT_RETRY_FOR = '30s'

/** Returns logbooks in Postgres. @throws InvalidArgument for an invalid address or parameter */
export function sqlPersistence(
  uri: ResourceUri,
  options: { readonly create?: boolean; readonly log?: Logger } = {},
): Persistence {
  const place = parsePostgresLocation(uri, ['retryFor'])
  const retryFor = readDurationParameter(uri, 'retryFor') ?? toMilliseconds(DEFAULT_RETRY_FOR, 'retryFor')
  const driver = new PostgresPool(place)
  const { schema } = place
  const closeDriver = () => driver.close()
  const own = { place: postgresPlace(place), closeDriver }
  return new SqlPersistence({ uri: uri.printable, driver, schema, retryFor, ...own, ...options })
}

/** The options of logbooks over a connection or pool of the caller. */
export interface DriverPersistenceOptions {
  /** The schema of the tables, which are created when they are missing. `jobboard` by default. */
  readonly schema?: string
  /** The time for which operations wait for a database that is away before they fail; 30 s by default. */
  readonly retryFor?: Duration
  /** Whether missing tables are created; true by default. With false, missing tables are NotFound. */
  readonly create?: boolean
  /** The codecs, as for `openPersistence`. */
  readonly codec?: LogbookCodec | readonly LogbookCodec[]
  /** The logger, as for `openPersistence`. */
  readonly log?: Logger
}

/** Opens logbooks over a driver; see `openPersistenceOver` in `../open.ts`. */
export async function sqlPersistenceOver(
  driver: SqlDriver,
  options: DriverPersistenceOptions = {},
): Promise<Persistence> {
  if (typeof driver?.query !== 'function')
    throw new InvalidArgument(
      'openPersistenceOver: the first argument must be a Postgres driver, such as new pg.Pool()',
    )
  assertOptions(options, { schema: true, retryFor: true, create: true, codec: true, log: true }, 'openPersistenceOver')
  if (options.log !== undefined) assertLogger(options.log)
  const schema = schemaName(options.schema ?? 'jobboard')
  const retryFor = toMilliseconds(options.retryFor ?? DEFAULT_RETRY_FOR, 'retryFor')
  const { create, log } = options
  const rest = { ...(create === undefined ? {} : { create }), ...(log ? { log } : {}) }
  const sealing = new RecordCodec(options.codec)
  const inner = new SqlPersistence({ uri: `postgres: (schema ${schema})`, driver, schema, retryFor, ...rest })
  const persistence = new CodecPersistence(inner, sealing)
  await persistence.open()
  return persistence
}
