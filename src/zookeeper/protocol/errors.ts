/**
 * What goes wrong when talking to ZooKeeper: one class a meaning.
 *
 * Every error says in `outcome` what became of the request, because that decides what may be done next:
 *
 *     not-sent   nothing left this process: safe to ask again, on any session
 *     refused    the server answered with an error: nothing was changed
 *     unknown    it was sent and no answer came: it may have happened, or may still happen
 *
 * And in `retryable` whether the same call may succeed later with nothing else changed, and does no harm: false for a
 * write that may have happened, and for whatever a client will never do any more.
 */
import { JobboardError, type JobboardErrorOptions } from '../../core/errors.ts'
import { parentPath } from './path.ts'

/** What became of a request: `not-sent`, `refused` (nothing was changed), or `unknown`. */
export type Outcome = 'not-sent' | 'refused' | 'unknown'

/** What an error of the client carries beside its message. */
export interface ZooKeeperErrorOptions extends JobboardErrorOptions {
  readonly outcome?: Outcome
  readonly path?: string | undefined
  readonly zkCode?: number | undefined
  readonly index?: number | undefined
}

/** Base of all, and itself what a code means that has no class of its own. */
export class ZooKeeperError extends JobboardError {
  static override readonly code: string = 'JOBBOARD_ZOOKEEPER'
  static readonly outcome: Outcome = 'refused'

  readonly outcome: Outcome
  readonly path: string | undefined
  /** The server's number for it, where the server said it. */
  readonly zkCode: number | undefined
  /** Which operation of a multi was refused. */
  readonly index: number | undefined

  constructor(message: string, options: ZooKeeperErrorOptions = {}) {
    super(message, options)
    this.outcome = options.outcome ?? new.target.outcome
    this.path = options.path
    this.zkCode = options.zkCode
    this.index = options.index
  }
}

// --- The server said no -------------------------------------------------------------------------------------------

/** There is no such znode. */
export class NoNode extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_NO_NODE'
}

/** There is such a znode already. */
export class NodeExists extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_NODE_EXISTS'
}

/** The znode is not at the version that was named. */
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

/** The ACL does not let this client do it. */
export class NoAuth extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_NO_AUTH'
}

/** The server does not accept this ACL: it is empty, or names a scheme that it does not know. */
export class InvalidAcl extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_INVALID_ACL'
}

/** The server wants an identity that this client did not give, or does not believe the one it gave. */
export class AuthFailed extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_AUTH_FAILED'
}

/** The session was taken over by another connection; the one that asked is closed. */
export class SessionMoved extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_SESSION_MOVED'
}

/** The server has lost its quorum and only reads. */
export class ReadOnlyServer extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_READ_ONLY_SERVER'
  static override readonly retryable = true
}

/** There is no such watch to remove. */
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

/** The server takes the arguments for wrong. */
export class BadArguments extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_BAD_ARGUMENTS'
}

/** The session is a local one of its server's, and such sessions own no ephemeral znodes. */
export class EphemeralOnLocalSession extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_EPHEMERAL_ON_LOCAL_SESSION'
}

/** The ensemble cannot change its members: it was not allowed to, is at it already, or would lose its quorum. */
export class ReconfigRefused extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_RECONFIG_REFUSED'
}

// --- The session or the connection is gone --------------------------------------------------------------------------

/** The session is over, and its ephemeral znodes with it. */
export class SessionExpired extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_SESSION_EXPIRED'
}

/**
 * The connection broke while the request was under way. A write may have happened: look before you ask again. What only
 * reads may be asked again (`retryable`).
 */
export class ConnectionLoss extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_CONNECTION_LOSS'
  static override readonly outcome = 'unknown'
}

/** There is no connection, and none came in time; or there is to be none any more, and then it is not retryable. */
export class NotSent extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_NOT_SENT'
  static override readonly outcome = 'not-sent'
  static override readonly retryable = true
}

/** Larger than the server takes. A server that gets such a frame hangs up on everybody who shares the connection. */
export class RequestTooLarge extends ZooKeeperError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_REQUEST_TOO_LARGE'
  static override readonly outcome = 'not-sent'
}

// --- Codes --------------------------------------------------------------------------------------------------------

interface ErrorMeaning {
  readonly type: typeof ZooKeeperError
  readonly message: string
  readonly outcome?: Outcome
  /** It is over by itself. */
  readonly isTransient?: true
}

/** To those who only look, an answer like any other. */
export const NO_NODE = -101

const MEANINGS_BY_CODE: Readonly<Record<number, ErrorMeaning>> = {
  [-6]: { type: Unimplemented, message: 'the server does not know this operation; ZooKeeper 3.6 or newer is needed' },
  [-13]: {
    type: ReconfigRefused,
    message: 'too few of the new members are up to date for a quorum',
    isTransient: true,
  },
  [-14]: { type: ReconfigRefused, message: 'another change of the members is under way', isTransient: true },
  [-8]: { type: BadArguments, message: 'the server takes the arguments for wrong' },
  [NO_NODE]: { type: NoNode, message: 'there is no such znode' },
  [-102]: { type: NoAuth, message: 'the ACL does not allow it' },
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

/** Codes above this are about the server itself, not about what was asked: they do not prove that nothing changed. */
const NEWEST_SYSTEM_CODE = -100
const MARSHALLING_ERROR = -5

/**
 * The error for a code that the server answered with, known or not.
 *
 * @param options.again whether there may be another connection to ask the same
 * @param options.anew whether there may be another session to ask the same
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
  const says = toAbsenceError(zkCode, operation, path) ?? meaning?.message ?? `ZooKeeper answered with error ${zkCode}`
  const subject = path === undefined ? operation : `${operation} ${path}`
  const place = index === undefined ? '' : ` (operation ${index} of a multi)`
  const type = meaning?.type ?? ZooKeeperError
  const again = outcome === 'unknown' && READ_OPERATIONS.has(operation) && options.again
  const anew = type === SessionExpired && options.anew
  const retryable = again || anew || meaning?.isTransient
  return new type(`${subject}: ${says}${place}`, { outcome, path, zkCode, index, retryable })
}

/** What is missing where it is not what was asked about. Above the root of a client there is nothing but its chroot. */
function toAbsenceError(zkCode: number, operation: string, path: string | undefined): string | undefined {
  if (zkCode !== NO_NODE || path === undefined) return undefined
  const missing = operation === 'create' ? parentPath(path) : path
  if (missing === '/') return "the chroot of this client is not there; mkdirp('/') makes it"
  if (missing === undefined || missing === path) return undefined
  return `its parent ${missing} is not there; mkdirp makes it`
}

// --- The connection broke -------------------------------------------------------------------------------------------

/** What changes nothing, however often it is asked. */
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
 * The error for a request that was sent and not answered.
 *
 * @param how what came in between
 * @param options.again whether there is to be another connection, so that asking again makes sense
 */
export function connectionLossError(
  { operation, path }: { readonly operation: string; readonly path?: string | undefined },
  how: string,
  options: { readonly again: boolean; readonly cause?: unknown },
): ConnectionLoss {
  const { again, cause } = options
  const reads = READ_OPERATIONS.has(operation)
  const subject = path === undefined ? operation : `${operation} ${path}`
  const then = reads ? 'it changes nothing, and may be asked again' : 'it may have happened'
  return new ConnectionLoss(`${subject}: ${how}${reads && !again ? '' : `; ${then}`}`, {
    path,
    cause,
    retryable: reads && again,
  })
}
