/** Opens boards by URI. Opening a board connects it. */
import { InvalidArgument } from '../core/errors.ts'
import { assertBoolean, assertOptions, type KnownOptions } from '../core/options.ts'
import { isMisspelt } from '../core/texts.ts'
import { assertParameters, parseUri, type ResourceUri } from '../core/uri.ts'
import { boardInternals } from './api/board-internals.ts'
import { JobBoard } from './api/job-board.ts'
import { type BoardOptions, boardSettings } from './api/options.ts'
import { MemoryBackend, memorySpace } from './backends/memory/index.ts'
import type { SecurityOptions } from './backends/zookeeper/index.ts'
import type { Backend } from './contract/index.ts'
import type { BoardSide } from './copy/sides.ts'

/** Options of `openBoard`: the owner's name, credentials, and the access list of a board that is created. */
export interface OpenBoardOptions extends BoardOptions, SecurityOptions {
  /** The signal that stops the opening. */
  readonly signal?: AbortSignal
  /** Whether a missing board is created; true by default. With false, opening throws NotFound, so that a reader creates no board. */
  readonly create?: boolean
}

const KNOWN_OPTIONS: KnownOptions<OpenBoardOptions> = {
  who: true,
  log: true,
  unacceptedAfter: true,
  keepHistory: true,
  telemetry: true,
  signal: true,
  create: true,
  auth: true,
  sasl: true,
  tls: true,
  acl: true,
}

type BackendFactory = (uri: ResourceUri, options: OpenBoardOptions) => Promise<Backend>

/** The backend factories by URI scheme. Each loads its driver on its first call. */
const BACKENDS: Readonly<Record<string, BackendFactory>> = {
  memory: async (uri, { auth, sasl, tls, acl }) => {
    assertParameters(uri, [])
    if ((Array.isArray(auth) ? auth.length > 0 : auth) || sasl || tls || acl)
      throw new InvalidArgument(
        `board ${uri.printable}: a memory board exists in this process only; omit auth, sasl, tls and acl`,
      )
    return new MemoryBackend({ uri: uri.printable, space: memorySpace(uri.path) })
  },
  sqlite: openSqlite,
  zookeeper: openZooKeeper,
  zookeepers: openZooKeeper,
  postgres: openPostgres,
  postgresql: openPostgres,
  redis: openRedis,
  rediss: openRedis,
  'redis+unix': openRedis,
  'redis+sentinel': openRedis,
  'rediss+sentinel': openRedis,
  'redis+cluster': openRedis,
  'rediss+cluster': openRedis,
}

async function openZooKeeper(uri: ResourceUri, options: OpenBoardOptions): Promise<Backend> {
  const { zooKeeperBackend } = await import('./backends/zookeeper/index.ts')
  return zooKeeperBackend(uri, options)
}

async function openSqlite(uri: ResourceUri, options: OpenBoardOptions): Promise<Backend> {
  const { create, log, auth, sasl, tls, acl } = options
  if ((Array.isArray(auth) ? auth.length > 0 : auth) || sasl || tls || acl)
    throw new InvalidArgument(
      `board ${uri.printable}: the mode of the file decides who may use it; omit auth, sasl, tls and acl`,
    )
  const { sqliteBackend } = await import('./backends/sqlite/index.ts')
  return sqliteBackend(uri, {
    who: boardSettings(options).who,
    ...(create === undefined ? {} : { create }),
    ...(log ? { log } : {}),
  })
}

async function openPostgres(uri: ResourceUri, options: OpenBoardOptions): Promise<Backend> {
  const { create, log, auth, sasl, tls, acl } = options
  if ((Array.isArray(auth) ? auth.length > 0 : auth) || sasl || tls || acl)
    throw new InvalidArgument(
      `board ${uri.printable}: the URI contains the credentials and TLS settings; omit auth, sasl, tls and acl`,
    )
  const { postgresBackend } = await import('./backends/postgres/index.ts')
  return postgresBackend(uri, {
    who: boardSettings(options).who,
    ...(create === undefined ? {} : { create }),
    ...(log ? { log } : {}),
  })
}

async function openRedis(uri: ResourceUri, options: OpenBoardOptions): Promise<Backend> {
  const { auth = [], sasl, acl } = options
  if ((Array.isArray(auth) ? auth.length > 0 : auth) || sasl || acl)
    throw new InvalidArgument(
      `board ${uri.printable}: auth, sasl and acl are options of ZooKeeper boards; write user:password@ before the host`,
    )
  const { redisBackend } = await import('./backends/redis/index.ts')
  return redisBackend(uri, options)
}

/**
 * Opens a board: `zookeeper://host:2181,host2:2181/path`, the same as `zookeepers:` with TLS; `postgres://user@host/database?board=NAME`;
 * `redis://host:6379/0?prefix=taskflow`, and `rediss:`, `redis+unix:`, `redis+sentinel:`, `redis+cluster:`; or `memory:` (a new one, for this board object
 * only) and `memory:NAME` (shared by all who open it in this process); `sqlite:./jobs.db` for the processes of one machine.
 *
 * @throws InvalidArgument for a URI that is not valid for a board
 * @throws NotFound with `create: false`, when there is no board
 * @throws AccessDenied when the servers refuse the credentials, or the user has no access to the board
 * @throws NotConnected when the servers cannot be reached in time; IncompatibleVersion when they are too old
 * @example await using board = await openBoard('zookeeper://127.0.0.1:2181/demo')
 */
export async function openBoard(uri: string | URL, options: OpenBoardOptions = {}): Promise<JobBoard> {
  return (await openSide(uri, options)).board
}

/** Opens a board like {@link openBoard}, and returns it with its backend, for a copy. @throws as openBoard */
export async function openSide(uri: string | URL, options: OpenBoardOptions = {}): Promise<BoardSide> {
  const text = uri instanceof URL ? uri.href : uri
  if (typeof text !== 'string' || text === '')
    throw new InvalidArgument('the URI of the board is missing; pass one such as zookeeper://127.0.0.1:2181/demo')
  assertOptions(options, KNOWN_OPTIONS, 'openBoard')
  assertBoolean(options.create, 'openBoard: create')
  // The options are checked first: an error after the session is open would leave it open.
  boardSettings(options)
  const { parsed, factory } = chooseBackend(text)
  const backend = await factory(parsed, options)
  const board = new JobBoard(backend, options)
  await boardInternals(board).open(options.signal ? { signal: options.signal } : {})
  return { board, backend }
}

/** Checks the form of a URI, and that its scheme is one of a board, without opening anything. @throws InvalidArgument */
export function assertBoardUri(text: string): void {
  chooseBackend(text)
}

function chooseBackend(text: string): { readonly parsed: ResourceUri; readonly factory: BackendFactory } {
  const parsed = parseUri(text, 'board')
  const factory = Object.hasOwn(BACKENDS, parsed.scheme) ? BACKENDS[parsed.scheme] : undefined
  if (!factory) {
    const similar = Object.keys(BACKENDS).find((scheme) => isMisspelt(parsed.scheme, scheme))
    const advice =
      similar === undefined
        ? 'write sqlite:./jobs.db, zookeeper://127.0.0.1:2181/demo, postgres://127.0.0.1/database, redis://127.0.0.1:6379/0, or memory:'
        : `did you mean ${similar}:?`
    throw new InvalidArgument(`board ${parsed.printable}: unknown scheme ${parsed.scheme}:; ${advice}`)
  }
  return { parsed, factory }
}
