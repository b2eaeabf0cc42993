/**
 * Errors of the ZooKeeper client: one class per meaning.
 *
 * Every error says in `outcome` what became of the request, because that decides what the caller may do next:
 *
 *     not-sent   nothing left this process: safe to retry, in any session
 *     refused    the server answered with an error: nothing was changed
 *     unknown    it was sent and no answer came: it may have been carried out, or may still be
 *
 * `retryable` says whether the same call may succeed later with nothing else changed, and does no harm: false for a
 * write with an unknown outcome, and for requests that a client can never send again.
 */
import { JobboardError, type JobboardErrorOptions } from '../../core/errors.ts'
import { parentPath } from './path.ts'

/** Outcome of a request: `not-sent`, `refused` (nothing was changed), or `unknown`. */
export type Outcome = 'not-sent' | 'refused' | 'unknown'

/** Options of an error beside its message. */
export interface ZooKeeperErrorOptions extends JobboardErrorOptions {
  readonly outcome?: Outcome
  readonly path?: string | undefined
  readonly zkCode?: number | undefined
  readonly index?: number | undefined
}

/** Base class of all, and the class of codes that have no class of their own. */
export class ZooKeeperError extends JobboardError {
  static override readonly code: string = 'JOBBOARD_ZOOKEEPER'
  static readonly outcome: Outcome = 'refused'

  readonly outcome: Outcome
  readonly path: string | undefined
  /** Error code of the server, if the server sent one. */
  readonly zkCode: number | undefined
  /** Index of the refused operation of a multi. */
  readonly index: number | undefined

  constructor(message: string, options: ZooKeeperErrorOptions = {}) {
    super(message, options)
    this.outcome = options.outcome ?? new.target.outcome
    this.path = options.path
    this.zkCode = options.zkCode
    this.index = options.index
  }
}

// --- Refused by the server ----------------------------------------------------------------------------------------

/** The znode does not exist. */
export class NoNode extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_NO_NODE'
}

/** The znode exists already. */
export class NodeExists extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_NODE_EXISTS'
}

/** The znode is not at the given version. */
export class BadVersion extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_BAD_VERSION'
}

/** A znode with children cannot be deleted. */
export class NotEmpty extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_NOT_EMPTY'
}

/** An ephemeral znode cannot have children. */
export class NoChildrenForEphemerals extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_NO_CHILDREN_FOR_EPHEMERALS'
}

/** The ACL does not allow it. */
export class NoAuth extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_NO_AUTH'
}

/** The server does not accept this ACL: it is empty, or names a scheme that it does not know. */
export class InvalidAcl extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_INVALID_ACL'
}

/** The server requires an identity that this client did not give, or rejects the one it gave. */
export class AuthFailed extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_AUTH_FAILED'
}

/** The session was taken over by another connection; the connection of this request is closed. */
export class SessionMoved extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_SESSION_MOVED'
}

/** The server has lost its quorum and only reads. */
export class ReadOnlyServer extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_READ_ONLY_SERVER'
  static override readonly retryable = true
}

/** The watch to remove does not exist. */
export class NoWatcher extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_NO_WATCHER'
}

/** The path's quota, enforced by the servers, leaves no room for this. */
export class QuotaExceeded extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_QUOTA_EXCEEDED'
}

/** The server is overloaded and did not look at the request. */
export class Throttled extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_THROTTLED'
  static override readonly retryable = true
}

/** The server does not know this operation. */
export class Unimplemented extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_UNIMPLEMENTED'
}

/** The server rejects the arguments. */
export class BadArguments extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_BAD_ARGUMENTS'
}

/** The session is local to its server; local sessions cannot own ephemeral znodes. */
export class EphemeralOnLocalSession extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_EPHEMERAL_ON_LOCAL_SESSION'
}

/** The ensemble cannot change its members: it is not allowed to, is changing them already, or would lose its quorum. */
export class ReconfigRefused extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_RECONFIG_REFUSED'
}

// --- Lost sessions and connections --------------------------------------------------------------------------------

/** The session is over, and its ephemeral znodes are deleted. */
export class SessionExpired extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_SESSION_EXPIRED'
}

/**
 * The connection broke before the answer arrived. A write may have been carried out: check before you repeat it. Reads
 * may be repeated (`retryable`).
 */
export class ConnectionLoss extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_CONNECTION_LOSS'
  static override readonly outcome = 'unknown'
}

/** No connection was available in time. It is not retryable when the client will never connect again. */
export class NotSent extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_NOT_SENT'
  static override readonly outcome = 'not-sent'
  static override readonly retryable = true
}

/** The request exceeds the server's limit. A server closes the connection at such a frame, for all who share it. */
export class RequestTooLarge extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_REQUEST_TOO_LARGE'
  static override readonly outcome = 'not-sent'
}

// --- Codes --------------------------------------------------------------------------------------------------------

interface ErrorMeaning {
  readonly type: typeof ZooKeeperError
  readonly message: string
  readonly outcome?: Outcome
  /** Whether the condition ends by itself. */
  readonly isTransient?: true
}

/** Code of a missing znode, which is an ordinary answer for `exists`. */
export const NO_NODE = -101
const NO_AUTH = -102

const MEANINGS_BY_CODE: Readonly<Record<number, ErrorMeaning>> = {
  [-6]: { type: Unimplemented, message: 'the server does not know this operation; ZooKeeper 3.6 or newer is needed' },
  [-13]: {
    type: ReconfigRefused,
    message: 'too few of the new members are up to date for a quorum',
    isTransient: true,
  },
  [-14]: { type: ReconfigRefused, message: 'another change of the members is under way', isTransient: true },
  [-8]: { type: BadArguments, message: 'the server rejects the arguments' },
  [NO_NODE]: { type: NoNode, message: 'there is no such znode' },
  [NO_AUTH]: { type: NoAuth, message: 'the ACL does not allow it' },
  [-103]: { type: BadVersion, message: 'the znode is at another version' },
  [-108]: { type: NoChildrenForEphemerals, message: 'an ephemeral znode cannot have children' },
  [-110]: { type: NodeExists, message: 'the znode exists already' },
  [-111]: { type: NotEmpty, message: 'the znode has children' },
  [-112]: { type: SessionExpired, message: 'the session is over' },
  [-114]: { type: InvalidAcl, message: 'the server does not accept this ACL' },
  [-115]: { type: AuthFailed, message: 'authentication failed' },
  [-118]: { type: SessionMoved, message: 'the session has moved to another connection' },
  [-119]: { type: ReadOnlyServer, message: 'the server is read-only: it has lost its quorum' },
  [-120]: { type: EphemeralOnLocalSession, message: 'a local session cannot own ephemeral znodes' },
  [-121]: { type: NoWatcher, message: 'there is no such watch' },
  [-122]: { type: ZooKeeperError, message: 'the server gave up on the request', outcome: 'unknown' },
  [-123]: { type: ReconfigRefused, message: 'the servers run without reconfigEnabled=true' },
  [-124]: { type: AuthFailed, message: 'the server demands SASL authentication' },
  [-125]: { type: QuotaExceeded, message: 'a quota is exceeded' },
  [-127]: { type: Throttled, message: 'the server is overloaded' },
}

/**
 * Upper limit of the codes about the request. Higher codes are about the server, and do not prove that nothing changed.
 */
const NEWEST_SYSTEM_CODE = -100
const MARSHALLING_ERROR = -5

/**
 * Returns the error for a code of the server, known or not.
 *
 * @param options.again whether another connection may follow, on which the request can be repeated
 * @param options.anew whether another session may follow, in which the request can be repeated
 */
export function toError(
  zkCode: number,
  request: { readonly operation: string; readonly path?: string | undefined; readonly index?: number | undefined },
  options: { readonly again?: boolean; readonly anew?: boolean } = {},
): ZooKeeperError {
  const { operation, path, index } = request
  const meaning = MEANINGS_BY_CODE[zkCode]
  const system = zkCode > NEWEST_SYSTEM_CODE && zkCode !== MARSHALLING_ERROR
  const outcome = meaning ? (meaning.outcome ?? 'refused') : system ? 'unknown' : 'refused'
  const says =
    toAbsenceError(zkCode, operation, path) ??
    toParentAclError(zkCode, operation, path) ??
    meaning?.message ??
    `ZooKeeper answered with error ${zkCode}`
  const subject = path === undefined ? operation : `${operation} ${path}`
  const place = index === undefined ? '' : ` (operation ${index} of a multi)`
  const type = meaning?.type ?? ZooKeeperError
  const again = outcome === 'unknown' && READ_OPERATIONS.has(operation) && options.again
  const anew = type === SessionExpired && options.anew
  const retryable = again || anew || meaning?.isTransient
  return new type(`${subject}: ${says}${place}`, { outcome, path, zkCode, index, retryable })
}

/** Returns the message for a missing znode other than the one in the request: its parent, or the client's chroot. */
function toAbsenceError(zkCode: number, operation: string, path: string | undefined): string | undefined {
  if (zkCode !== NO_NODE || path === undefined) return undefined
  const missing = operation === 'create' ? parentPath(path) : path
  if (missing === '/') return "the chroot of this client does not exist; create it with mkdirp('/')"
  if (missing === undefined || missing === path) return undefined
  return `its parent ${missing} does not exist; create it with mkdirp`
}

/** Returns the message for a znode that cannot be created or deleted: the ACL of its parent decides this. */
function toParentAclError(zkCode: number, operation: string, path: string | undefined): string | undefined {
  if (zkCode !== NO_AUTH || path === undefined || (operation !== 'create' && operation !== 'delete')) return undefined
  const parent = parentPath(path)
  return parent === undefined ? undefined : `the ACL of its parent ${parent} does not allow it`
}

// --- The connection broke -------------------------------------------------------------------------------------------

/** Operations that change nothing, however often they are repeated. */
const READ_OPERATIONS: ReadonlySet<string> = new Set([
  'exists',
  'getData',
  'getChildren',
  'getACL',
  'getEphemerals',
  'getAllChildrenNumber',
  'multiRead',
  'sync',
  'whoAmI',
  'ping',
])

/**
 * Returns the error for a request that was sent and not answered.
 *
 * @param how the reason
 * @param options.again whether another connection may follow, so that a retry makes sense
 */
export function connectionLossError(
  { operation, path }: { readonly operation: string; readonly path?: string | undefined },
  how: string,
  options: { readonly again: boolean; readonly cause?: unknown },
): ConnectionLoss {
  const { again, cause } = options
  const reads = READ_OPERATIONS.has(operation)
  const subject = path === undefined ? operation : `${operation} ${path}`
  const then = reads ? 'it changes nothing and may be repeated' : 'it may have happened'
  return new ConnectionLoss(`${subject}: ${how}${reads && !again ? '' : `; ${then}`}`, {
    path,
    cause,
    retryable: reads && again,
  })
}
