/** Logbooks in Postgres: `postgres://user@host/database`, or over a driver of one's own. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertLogger, type Logger } from '../../core/log.ts'
import { assertOptions } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { type ResourceUri, readDurationParameter } from '../../core/uri.ts'
import { PostgresPool, parsePostgresLocation, type SqlDriver, schemaName } from '../../postgres/index.ts'
import { RecordCodec } from '../codecs/atom-codec.ts'
import { CodecPersistence } from '../codecs/codec-persistence.ts'
import type { LogbookCodec } from '../codecs/codecs.ts'
import type { Persistence } from '../persistence.ts'
import { SqlPersistence } from './postgres-persistence.ts'

/** Longer than a database takes to be restarted, or to fail over. */
const DEFAULT_RETRY_FOR = '30s'

/** @throws InvalidArgument for an address, or a parameter, that means nothing */
export function sqlPersistence(
  uri: ResourceUri,
  options: { readonly create?: boolean; readonly log?: Logger } = {},
): Persistence {
  const place = parsePostgresLocation(uri, ['retryFor'])
  const retryFor = readDurationParameter(uri, 'retryFor') ?? toMilliseconds(DEFAULT_RETRY_FOR, 'retryFor')
  const driver = new PostgresPool(place)
  const { schema } = place
  const closeDriver = () => driver.close()
  return new SqlPersistence({ uri: uri.printable, driver, schema, retryFor, closeDriver, ...options })
}

/** Of logbooks over a connection or pool of one's own. */
export interface DriverPersistenceOptions {
  /** Where the tables are; made when they are missing. `jobboard` by default. */
  readonly schema?: string
  /** How long a database that is away is waited for, before what was asked fails; 30 s by default. */
  readonly retryFor?: Duration
  /** False: tables that are not there are not made, but NotFound. */
  readonly create?: boolean
  /** As of `openPersistence`. */
  readonly codec?: LogbookCodec | readonly LogbookCodec[]
  /** As of `openPersistence`. */
  readonly log?: Logger
}

/** Opens logbooks over a driver, see `openPersistenceOver` in `../open.ts`. */
export async function sqlPersistenceOver(
  driver: SqlDriver,
  options: DriverPersistenceOptions = {},
): Promise<Persistence> {
  if (typeof driver?.query !== 'function')
    throw new InvalidArgument('openPersistenceOver takes a driver of Postgres, such as new pg.Pool()')
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
