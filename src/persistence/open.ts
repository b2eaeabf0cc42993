/** Opens logbooks by URI. */
import { InvalidArgument } from '../core/errors.ts'
import { assertLogger, type Logger } from '../core/log.ts'
import { assertOptions, defined, type KnownOptions } from '../core/options.ts'
import { parseUri, type ResourceUri } from '../core/uri.ts'
import type { SqlDriver } from '../postgres/index.ts'
import { RecordCodec } from './codecs/atom-codec.ts'
import { CodecPersistence } from './codecs/codec-persistence.ts'
import type { LogbookCodec } from './codecs/codecs.ts'
import { directoryPersistence } from './directory/index.ts'
import { memoryPersistence } from './memory/index.ts'
import type { Persistence } from './persistence.ts'
import type { DriverPersistenceOptions } from './postgres/index.ts'
import type { SecurityOptions } from './zookeeper/index.ts'

/** The options for opening logbooks: credentials, and codecs for results. */
export interface OpenPersistenceOptions extends SecurityOptions {
  /**
   * Whether missing logbooks are created; true by default. With false, missing logbooks are NotFound: a read-only use
   * must not create tables or folders.
   */
  readonly create?: boolean
  /**
   * The codecs for the results and errors of tasks: `encrypted({ key })`, `compressed()`, a custom codec, or a list,
   * which is applied in its order. Records that were written earlier without the codec can still be read.
   */
  readonly codec?: LogbookCodec | readonly LogbookCodec[]
  /**
   * The logger for a warning when unexpected users may read or change logbooks on ZooKeeper or in Postgres; silent by
   * default.
   */
  readonly log?: Logger
}

const KNOWN_OPTIONS: KnownOptions<OpenPersistenceOptions> = {
  create: true,
  codec: true,
  log: true,
  auth: true,
  sasl: true,
  tls: true,
  acl: true,
}

interface Scheme {
  /** The form of such a URI, for error messages. */
  readonly usage: string
  make(uri: ResourceUri, options: OpenPersistenceOptions): Persistence | Promise<Persistence>
}

/** The modules that talk to servers are loaded on first use only. */
const openSql: Scheme['make'] = async (uri, options) => {
  return (await import('./postgres/index.ts')).sqlPersistence(uri, {
    ...withoutSecurity(uri, options),
    ...defined({ log: options.log }),
  })
}
const openSqlite: Scheme['make'] = async (uri, options) => {
  return (await import('./sqlite/index.ts')).sqlitePersistence(uri, withoutSecurity(uri, options))
}
const openZooKeeper: Scheme['make'] = async (uri, options) => {
  return (await import('./zookeeper/index.ts')).zooKeeperPersistence(uri, options)
}

const SCHEMES: ReadonlyMap<string, Scheme> = new Map<string, Scheme>([
  [
    'memory',
    { usage: 'memory: or memory:NAME', make: (uri, options) => memoryPersistence(uri, withoutSecurity(uri, options)) },
  ],
  [
    'directory',
    {
      usage: 'directory:./logbooks',
      make: (uri, options) => directoryPersistence(uri, withoutSecurity(uri, options)),
    },
  ],
  ['sqlite', { usage: 'sqlite:./jobs.db', make: openSqlite }],
  ['postgres', { usage: 'postgres://user@host/database', make: openSql }],
  ['zookeeper', { usage: 'zookeeper://127.0.0.1:2181/taskflow/logbooks', make: openZooKeeper }],
  ['zookeepers', { usage: 'zookeepers://host:2281/taskflow/logbooks?ca=ca.pem', make: openZooKeeper }],
  ['postgresql', { usage: 'postgresql://user@host/database', make: openSql }],
])

/**
 * Opens the logbooks that a URI names; the caller closes them. An object that is open already is returned as it is, and
 * its opener closes it.
 *
 * - `memory:` is private and lasts as long as the object; `memory:NAME` is shared by all in this process that name it.
 * - `directory:DIR` keeps them in files, shared by the processes of one machine; DIR is relative to the working
 *   directory and created if it is missing.
 * - `sqlite:./jobs.db` keeps them in one file, which may have the board too, shared by the processes of one machine.
 * - `postgres://user:password@host:5432/database` keeps them in a database, shared by the processes of many machines;
 *   it requires the `pg` package.
 * - `zookeeper://127.0.0.1:2181/taskflow/logbooks` keeps small logbooks beside the board; `zookeepers:` is TLS.
 *
 * @throws InvalidArgument for an unknown scheme, parameter or option
 * @throws NotFound with `create: false`, when there are no logbooks
 * @throws AccessDenied when ZooKeeper does not accept the credentials, or they may not use the logbooks
 * @throws StorageFailure when the storage cannot be used
 * @example await using persistence = await openPersistence('directory:./logbooks')
 */
export async function openPersistence(
  uri: string | URL | Persistence,
  options: OpenPersistenceOptions = {},
): Promise<Persistence> {
  assertOptions(options, KNOWN_OPTIONS, 'openPersistence')
  if (options.log !== undefined) assertLogger(options.log)
  const place = uri instanceof URL ? uri.href : uri
  if (typeof place !== 'string') {
    if (typeof Object(place).open !== 'function')
      throw new InvalidArgument(
        'openPersistence: the first argument must be a URI such as directory:./logbooks, or an open persistence',
      )
    if (Object.keys(options).length === 0) return place
    throw new InvalidArgument(`openPersistence: ${place.uri} is open already; set the options where it is opened`)
  }
  const parsed = parseUri(place, 'persistence')
  const scheme = SCHEMES.get(parsed.scheme)
  if (!scheme) {
    const known = [...SCHEMES.values()].map(({ usage }) => usage).join(', ')
    throw new InvalidArgument(
      `${parsed.printable}: the scheme ${parsed.scheme}: is not known for logbooks; use ${known}`,
    )
  }
  const sealing = new RecordCodec(options.codec)
  const persistence = new CodecPersistence(await scheme.make(parsed, options), sealing)
  await persistence.open()
  return persistence
}

/**
 * Opens logbooks over a Postgres driver of the caller, which is left open.
 *
 * @throws InvalidArgument for invalid options; StorageFailure when the database cannot be used
 * @example await using persistence = await openPersistenceOver(new pg.Pool({ host: 'db' }), { schema: 'jobs' })
 */
export async function openPersistenceOver(
  driver: SqlDriver,
  options: DriverPersistenceOptions = {},
): Promise<Persistence> {
  // The modules for Postgres are loaded by their users only.
  return (await import('./postgres/index.ts')).sqlPersistenceOver(driver, options)
}

/**
 * Refuses options that only ZooKeeper supports: an ignored ACL would leave the logbooks open to everyone. @throws
 * InvalidArgument
 */
function withoutSecurity({ printable }: ResourceUri, options: OpenPersistenceOptions): { readonly create?: boolean } {
  const { auth, sasl, tls, acl, create } = options
  if ((Array.isArray(auth) ? auth.length > 0 : auth) || sasl || tls || acl)
    throw new InvalidArgument(
      `${printable}: auth, sasl, tls and acl apply to logbooks on ZooKeeper only; leave them out`,
    )
  return defined({ create })
}
