/**
 * The id of a board: a text that identifies it by its location. Several boards may share logbooks, and a logbook records the
 * board of its job; so the id must be the same in every process that opens the board, and after each restart.
 *
 * The id is computed from the URI and not generated when the board is created: a board that is created again after its servers
 * were lost continues the logbooks of the former one.
 */
import { parseUri, type ResourceUri } from '../../core/uri.ts'

type PostgresEnvironment = Readonly<Record<string, string | undefined>>

/**
 * Returns the URI in a normal form, reduced to the parts that identify the board: without credentials and settings, with the
 * hosts sorted by name, and with omitted defaults filled in. Host names are not resolved: a board that one process opens at
 * `localhost` and another at `127.0.0.1` has two ids.
 *
 * @param uri the URI of a board; its password may be masked
 * @param environment the variables of Postgres (`PGHOST`, …) which supply what the URI omits
 * @example boardId('zookeepers://ada:secret@zk2,zk1:2281/demo?tick=2s') // 'zookeeper://zk1:2281,zk2:2181/demo'
 */
export function boardId(uri: string, environment: PostgresEnvironment = process.env): string {
  const parsed = parseUri(uri, 'board')
  const family = parsed.scheme.replace(/^(zookeeper|redis)s/, '$1').replace(/^postgresql$/, 'postgres')
  if (family === 'zookeeper') return `zookeeper://${normalizeHosts(parsed, '2181')}${zooKeeperPath(parsed)}`
  if (family === 'postgres') return postgresId(parsed, environment)
  if (family.startsWith('redis')) return redisId(parsed, family)
  return `${family}:${parsed.path}`
}

/** Returns the path of the board, as `src/board/backends/zookeeper/index.ts` reads it. */
function zooKeeperPath({ path, parameters }: ResourceUri): string {
  const chroot = (parameters.get('chroot') ?? '').replace(/^\/+|\/+$/g, '')
  const own = path === '' || path === '/' ? '/taskflow/jobs' : path.replace(/\/$/, '')
  return `${chroot === '' ? '' : `/${chroot}`}${own}`
}

function postgresId(uri: ResourceUri, environment: PostgresEnvironment): string {
  const { authority, path, credentials, parameters } = uri
  const { PGHOST = 'localhost', PGPORT = '5432', PGUSER, PGDATABASE } = environment
  const host = authority === '' || authority.startsWith(':') ? `${PGHOST}${authority}` : authority
  const database = path.replace(/^\//, '') || PGDATABASE || credentials?.user || PGUSER || ''
  const names = { schema: parameters.get('schema') ?? 'jobboard', board: parameters.get('board') ?? 'default' }
  return `postgres://${normalizeHosts({ authority: host }, PGPORT)}/${database}?${new URLSearchParams(names)}`
}

function redisId(uri: ResourceUri, family: string): string {
  const own = { prefix: uri.parameters.get('prefix') ?? 'taskflow' }
  if (family === 'redis+unix')
    return `${family}:${uri.path}?${new URLSearchParams({ db: uri.parameters.get('db') ?? '0', ...own })}`
  const parts = uri.path.split('/').filter((part) => part !== '')
  const master = family === 'redis+sentinel' ? `/${parts.shift()}` : ''
  const database = Number(parts[0] ?? 0)
  const names = new URLSearchParams(own)
  return `${family}://${normalizeHosts(uri, master === '' ? '6379' : '26379')}${master}/${database}?${names}`
}

function normalizeHosts({ authority }: Pick<ResourceUri, 'authority'>, port: string): string {
  const named = authority.split(',').map((host) => host.trim().toLowerCase())
  return named
    .map((host) => (/:\d+$/.test(host) ? host : `${host}:${port}`))
    .toSorted()
    .join(',')
}

type Meta = Readonly<Record<string, unknown>>

/**
 * Returns whether a book belongs to another board. A book without a mark, of an older release or made by hand, may
 * belong to any board.
 */
export function isOfOtherBoard({ board }: Meta, own: { readonly boardId: string }): boolean {
  return typeof board === 'string' && board !== own.boardId
}

/**
 * Returns what the logbook says about a job that the board does not have, as the end of an error message. The message begins with the places
 * in which the job was not found. A job of another board may wait or run there.
 *
 * @param uri the board that was asked
 */
export function toLogbookText(
  { meta = {}, state }: { readonly meta?: Meta; readonly state: string },
  uri: string,
): string {
  return isOfOtherBoard(meta, { boardId: boardId(uri) })
    ? `its logbook belongs to board ${meta['board']}, and says ${state}: ask that board`
    : `its logbook says ${state}`
}
