/** The doctor's checks of ZooKeeper's servers, and of this client's rights on them. */
import { parseUri } from '../../core/uri.ts'
import { newUuid } from '../../core/uuid.ts'
import {
  BadVersion,
  NoAuth,
  NoNode,
  op,
  parseConnectString,
  parseZooKeeperLocation,
  type SecurityOptions,
  ZooKeeper,
} from '../../zookeeper/index.ts'
import { clockFinding, errorFinding, type Finding, okFinding, RIGHTS_ADVICE, warningFinding } from './finding.ts'
import { askServers, type ServerAnswer } from './four-letter.ts'

const DEFAULT_PATHS = { board: '/taskflow/jobs', persistence: '/taskflow/logbooks' } as const

const TENANTS_BY_USE = { board: 'board', persistence: 'logbooks' } as const

export interface ExaminedNode {
  readonly uri: string
  readonly what: keyof typeof DEFAULT_PATHS
  readonly security: SecurityOptions
  /** The time limit in milliseconds. */
  readonly timeout: number
}

/**
 * Examines each server by itself: a client needs only one server that answers, and an operator wants to know about all.
 */
export async function examineServers({ uri, what, security }: ExaminedNode): Promise<Finding[]> {
  const parsed = parseUri(uri, what)
  const { hosts } = await parseZooKeeperLocation(
    parsed,
    { tenant: TENANTS_BY_USE[what], defaultPath: DEFAULT_PATHS[what] },
    security,
  )
  // Over TLS the request would need this client's certificates: the session shows enough.
  if (parsed.scheme === 'zookeepers') return []
  return (await askServers(parseConnectString(hosts).endpoints)).map(serverFinding)
}

/** The oldest release that has everything that a board needs. */
const MIN_SERVER_VERSION: readonly [number, number] = [3, 6]

function serverFinding(server: ServerAnswer): Finding {
  const { address, version, mode, fault, lacksMajority } = server
  if (lacksMajority) {
    const advice =
      'nothing is wrong with it: start the other servers, until more than half of the ensemble run. No data are lost'
    return errorFinding('server', `${address} ${fault}`, advice)
  }
  if (fault !== undefined)
    return warningFinding('server', `${address} ${fault}`, 'start it again, or remove it from the URI')
  if (version === undefined)
    return okFinding('server', `${address} answers, and does not report its version (4lw.commands.whitelist)`)
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const text = `${address} is ZooKeeper ${version}, ${mode ?? 'in a mode that it does not report'}`
  if (major > MIN_SERVER_VERSION[0] || (major === MIN_SERVER_VERSION[0] && minor >= MIN_SERVER_VERSION[1]))
    return okFinding('server', text)
  return errorFinding('server', text, `boards need ${MIN_SERVER_VERSION.join('.')} or newer: upgrade it`)
}

/** Examines a node in a session of its own: round trip, clock, rights, and the sequence numbers that are left. */
export async function examineNode({ uri, what, security, timeout }: ExaminedNode): Promise<Finding[]> {
  const place = await parseZooKeeperLocation(
    parseUri(uri, what),
    { tenant: TENANTS_BY_USE[what], defaultPath: DEFAULT_PATHS[what] },
    security,
  )
  const { auth, sasl, tls } = place.security
  await using zookeeper = new ZooKeeper({
    hosts: place.hosts,
    ...(auth ? { auth } : {}),
    ...(sasl ? { sasl } : {}),
    ...(tls ? { tls } : {}),
  })
  await zookeeper.connect({ timeout })
  return [
    await roundTripFinding(zookeeper, place.path),
    ...(what === 'board' ? await clockFindings(zookeeper, place.path) : []),
    ...(await permissionFindings(zookeeper, place.path)),
    ...(what === 'board' ? await counterFindings(zookeeper, place.path).catch(ignoreRefusal) : []),
  ]
}

/** The duration of a round trip from which on it is reported as slow; each claim takes at least one. */
const SLOW_ROUND_TRIP_MS = 250

async function roundTripFinding(zookeeper: ZooKeeper, path: string): Promise<Finding> {
  const before = performance.now()
  await zookeeper.exists(path)
  const took = Math.round((performance.now() - before) * 10) / 10
  if (took < SLOW_ROUND_TRIP_MS) return okFinding('session', `an answer takes ${took} ms`)
  return warningFinding(
    'session',
    `an answer takes ${took} ms`,
    'check whether the servers, their disks or the network are overloaded',
  )
}

/**
 * Returns the finding about the clock: writes a temporary marker beside the board, like every client, and reads its
 * time.
 */
async function clockFindings(zookeeper: ZooKeeper, path: string): Promise<Finding[]> {
  const cut = path.lastIndexOf('/')
  const marker = `${path.slice(0, cut)}/.${path.slice(cut + 1)}-sessions/${newUuid()}`
  try {
    // The marker has the ACL of the board, like the markers of its own sessions: no other client may use it.
    const { acl } = await zookeeper.getACL(path)
    const before = Date.now()
    const { stat } = await zookeeper.create(marker, null, { ephemeral: true, acl })
    return [clockFinding([stat.ctime - Date.now(), stat.ctime - before])]
  } catch {
    // The rights to write are examined below.
    return []
  }
}

/** The data version that no znode has: a transaction that checks for it changes nothing. */
const NO_VERSION = 2 ** 31 - 1

/**
 * Returns the finding about the rights on a path. Asks the server to do what a client does, in transactions that fail at their last step:
 * only the server knows which identities an ACL permits (digests, SASL names, certificates, networks).
 */
async function permissionFindings(zookeeper: ZooKeeper, path: string): Promise<Finding[]> {
  const { data } = await zookeeper.getData(path).catch(() => ({ data: undefined }))
  const probe = `${path === '/' ? '' : path}/.doctor-${newUuid()}`
  const never = op.check(path, { version: NO_VERSION })
  const attempts: readonly [verb: string, attempt: () => Promise<unknown>][] = [
    ['read', () => zookeeper.getChildren(path)],
    ['write', () => zookeeper.multi([op.setData(path, data ?? null), never])],
    ['create', () => zookeeper.multi([op.create(probe, null), never])],
    ['delete', () => zookeeper.multi([op.delete(probe), never])],
  ]
  const lacking: string[] = []
  for (const [verb, attempt] of attempts) if (await attempt().then(() => false, isRefused)) lacking.push(verb)
  if (lacking.length === 0) return [okFinding('rights', `all rights that are needed on ${path}`)]
  return [errorFinding('rights', `${path} does not let this client ${lacking.join(', ')}`, RIGHTS_ADVICE)]
}

/** Returns no findings if the ACL does not allow the read: the finding about rights reports this. @throws other errors */
function ignoreRefusal(error: unknown): Finding[] {
  if (error instanceof NoAuth) return []
  throw error
}

/** Returns whether the server has refused an attempt; false if it has undone the attempt. @throws other errors */
function isRefused(error: unknown): boolean {
  if (error instanceof NoAuth) return true
  if (error instanceof BadVersion || error instanceof NoNode) return false
  throw error
}

/**
 * The largest sequence number. ZooKeeper counts created and deleted children in a signed 32-bit number; then it creates
 * no more.
 */
const MAX_SEQUENCE = 2 ** 31 - 1
const SEQUENCE_WARNING_FRACTION = 0.8

async function counterFindings(zookeeper: ZooKeeper, path: string): Promise<Finding[]> {
  const { data, stat } = await zookeeper.getData(path)
  const shared = Buffer.from(data ?? [])
    .toString('latin1')
    .includes('json')
  return [numbersFinding(stat.cversion, { path, shared })]
}

/**
 * Returns the finding about sequence numbers.
 *
 * @param count how many children were created and deleted so far; it wraps around at the limit
 */
export function numbersFinding(count: number, { path, shared }: { path: string; shared: boolean }): Finding {
  const used = count < 0 ? 1 : count / MAX_SEQUENCE
  const percent = Math.floor(used * 1_000) / 10
  if (used < SEQUENCE_WARNING_FRACTION)
    return okFinding('numbers', `${percent} % of ZooKeeper's sequence numbers are used up`)
  const text = `${percent} % of ZooKeeper's sequence numbers for ${path} are used up`
  if (shared)
    return errorFinding(
      'numbers',
      text,
      'when all are used up, TaskFlow cannot post here any more: move to a board on another path soon',
    )
  return warningFinding(
    'numbers',
    text,
    'clients generate longer numbers themselves from here on; a board on another path starts from zero',
  )
}
