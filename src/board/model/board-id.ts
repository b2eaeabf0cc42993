/**
 * Tells boards apart by where they are. Several boards may share logbooks, and a logbook records whose job it is of; so the
 * text must be the same in every process that opens the board, and after each restart.
 *
 * It is made of the URI and not drawn when the board is made: a board that was made anew, after its servers were lost, is
 * to go on with the logbooks of the one before.
 */
import { parseUri, type ResourceUri } from '../../core/uri.ts'

type PostgresEnvironment = Readonly<Record<string, string | undefined>>

/**
 * Returns the URI in one spelling, reduced to what says which board it is: without credentials and settings, with the hosts
 * in the order of their names and with the defaults that were left out. Names of hosts are not resolved: a board that one
 * process finds at `localhost` and another at `127.0.0.1` has two ids.
 *
 * @param uri a board's, also one in which a password is hidden
 * @param environment where Postgres' own variables name what the URI leaves out
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

/** As `src/board/backends/zookeeper/index.ts` reads it. */
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
  const parts = uri.path.split('/').filter((part) => part !== '')
  const master = family === 'redis+sentinel' ? `/${parts.shift()}` : ''
  const database = Number(parts[0] ?? 0)
  const names = new URLSearchParams({ prefix: uri.parameters.get('prefix') ?? 'taskflow' })
  return `${family}://${normalizeHosts(uri, master === '' ? '6379' : '26379')}${master}/${database}?${names}`
}

function normalizeHosts({ authority }: Pick<ResourceUri, 'authority'>, port: string): string {
  const named = authority.split(',').map((host) => host.trim().toLowerCase())
  return named
    .map((host) => (/:\d+$/.test(host) ? host : `${host}:${port}`))
    .toSorted()
    .join(',')
}
