/** From a URI to open logbooks. */
import { InvalidArgument } from '../core/errors.ts'
import { assertLogger, type Logger } from '../core/log.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
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

/** How logbooks are opened: who asks, and what is done to results before they are kept. */
export interface OpenPersistenceOptions extends SecurityOptions {
  /** False: logbooks that are not there are not made, but NotFound. A look must not leave tables or folders behind. */
  readonly create?: boolean
  /**
   * What is done to what tasks return and throw before it is kept: `encrypted({ key })`, `compressed()`, one's own, or a
   * list, which is applied in its order. What was kept without it before can still be read.
   */
  readonly codec?: LogbookCodec | readonly LogbookCodec[]
  /** Gets a warning where others than expected may read and change logbooks on ZooKeeper or in Postgres; silent by default. */
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
  /** How such a URI is written, for people who got it wrong. */
  readonly usage: string
  make(uri: ResourceUri, options: OpenPersistenceOptions): Persistence | Promise<Persistence>
}

/** What talks to servers is loaded when it is asked for, not before. */
const openSql: Scheme['make'] = async (uri, options) => {
  return (await import('./postgres/index.ts')).sqlPersistence(uri, {
    ...withoutSecurity(uri, options),
    ...(options.log ? { log: options.log } : {}),
  })
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
  ['postgres', { usage: 'postgres://user@host/database', make: openSql }],
  ['zookeeper', { usage: 'zookeeper://127.0.0.1:2181/taskflow/logbooks', make: openZooKeeper }],
  ['zookeepers', { usage: 'zookeepers://host:2281/taskflow/logbooks?ca=ca.pem', make: openZooKeeper }],
  ['postgresql', { usage: 'postgresql://user@host/database', make: openSql }],
])

/**
 * Opens the logbooks that a URI names; whoever calls this closes them. An object that is open already is handed back
 * as it is, and stays with whoever opened it.
 *
 * - `memory:` is private and gone with the object; `memory:NAME` is shared by all in this process that name it.
 * - `directory:DIR` keeps them in files, shared by the processes of one machine; DIR is relative to the working
 *   directory and made if it is not there.
 * - `postgres://user:password@host:5432/database` keeps them in a database, shared by the processes of many machines; it
 *   takes the `pg` package.
 * - `zookeeper://127.0.0.1:2181/taskflow/logbooks` keeps small ones beside the board; `zookeepers:` is TLS.
 *
 * @throws InvalidArgument for an unknown scheme, a parameter or an option that is not known
 * @throws NotFound with `create: false`, when there are none
 * @throws AccessDenied when ZooKeeper does not accept who this is, or the logbooks are not for them
 * @throws StorageFailure when the place cannot be used
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
      throw new InvalidArgument('no logbooks were named; give a URI such as directory:./logbooks, or what is open')
    if (Object.keys(options).length === 0) return place
    throw new InvalidArgument(`openPersistence: ${place.uri} is open; give its options to whoever opens it`)
  }
  const parsed = parseUri(place, 'persistence')
  const scheme = SCHEMES.get(parsed.scheme)
  if (!scheme) {
    const known = [...SCHEMES.values()].map(({ usage }) => usage).join(', ')
    throw new InvalidArgument(`${parsed.printable}: no logbooks can be kept in ${parsed.scheme}:; write ${known}`)
  }
  const sealing = new RecordCodec(options.codec)
  const persistence = new CodecPersistence(await scheme.make(parsed, options), sealing)
  await persistence.open()
  return persistence
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
  // What is for Postgres alone is loaded by those who have one.
  return (await import('./postgres/index.ts')).sqlPersistenceOver(driver, options)
}

/** @throws InvalidArgument for what only ZooKeeper can be told so: an ACL that nobody heeds would leave all to everybody */
function withoutSecurity({ printable }: ResourceUri, options: OpenPersistenceOptions): { readonly create?: boolean } {
  const { auth, sasl, tls, acl, create } = options
  if ((Array.isArray(auth) ? auth.length > 0 : auth) || sasl || tls || acl)
    throw new InvalidArgument(`${printable}: auth, sasl, tls and acl are of logbooks on ZooKeeper; leave them out`)
  return create === undefined ? {} : { create }
}
