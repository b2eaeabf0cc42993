/**
 * Identities of this client beside SASL, and whether servers accepted them.
 *
 *     given   before the first connection: part of the client's configuration, so that a refusal is final
 *     added   later: accepted when a server has confirmed it. If the answer is lost, the next connection sends it again; a
 *             refused one is removed, because otherwise no later connection could be kept
 */
import { createDeferred, type Deferred } from '../../core/async/abort.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { AuthFailed, ConnectionLoss, NotSent, type ZooKeeperError } from '../protocol/errors.ts'
import { auth, payloadBytes, type Request } from '../protocol/requests.ts'
import { ConnectionFault } from './faults.ts'

/** Credentials in a scheme, for example `digest` with `user:password`. */
export interface AuthInfo {
  readonly scheme: string
  /** Value in the scheme's format. Without TLS it can be read on the network. */
  readonly auth: string | Uint8Array
}

export interface ClientIdentity {
  readonly origin: 'given' | 'added'
  readonly scheme: string
  /** Request, encoded once, so that later changes of the caller's bytes have no effect. */
  readonly request: Request<undefined>
  /** Settles when a server has accepted or refused the identity. */
  readonly decided: Deferred<void>
  /** Whether it was sent to a server. */
  wasSent: boolean
  accepted: boolean
}

export class Identities {
  readonly #all: ClientIdentity[] = []
  #closed = false

  /** @throws InvalidArgument for an invalid identity */
  constructor(infos: readonly AuthInfo[]) {
    for (const info of infos) this.add(info, 'given')
  }

  /** Identities in the order in which they were added. */
  get all(): readonly ClientIdentity[] {
    return this.#all
  }

  /**
   * Adds an identity, or returns the existing one if it is the same.
   *
   * @throws InvalidArgument
   */
  add(info: AuthInfo, origin: ClientIdentity['origin']): ClientIdentity {
    const request = toAuthRequest(info)
    const same = this.#all.find((each) => each.request.frame.equals(request.frame))
    if (same) return same
    const identity = {
      origin,
      scheme: info.scheme,
      request,
      decided: createDeferred(),
      wasSent: false,
      accepted: false,
    }
    // The caller may not await it.
    identity.decided.promise.catch(() => undefined)
    if (this.#closed) identity.decided.reject(undecidedError(identity))
    else this.#all.push(identity)
    return identity
  }

  /**
   * Waits for the answer of a server.
   *
   * @throws AuthFailed when it refuses an identity that was given, or accepted before
   * @throws ConnectionFault when it refuses an added one: the next connection does without it
   */
  async decide(identity: ClientIdentity, answer: Promise<undefined>): Promise<void> {
    identity.wasSent = true
    try {
      await answer
      identity.accepted = true
      identity.decided.resolve()
    } catch (error) {
      if (!(error instanceof AuthFailed)) throw error
      const { scheme } = identity
      const message = `addAuth ${scheme}: the server does not accept this identity, or does not know the scheme`
      const refusal = new AuthFailed(message, { zkCode: error.zkCode, cause: error })
      if (identity.accepted || identity.origin === 'given') throw refusal
      this.#all.splice(this.#all.indexOf(identity), 1)
      identity.decided.reject(refusal)
      const fault = `the server does not accept an identity that was added, of scheme ${scheme}`
      throw new ConnectionFault('auth', fault, { cause: refusal })
    }
  }

  /** Rejects undecided identities: no server will be asked. */
  close(): void {
    this.#closed = true
    for (const identity of this.#all) if (!identity.accepted) identity.decided.reject(undecidedError(identity))
  }
}

/**
 * Encodes an identity.
 *
 * @throws InvalidArgument, without the secret
 */
function toAuthRequest(info: AuthInfo): Request<undefined> {
  const { scheme, auth: secret }: Partial<AuthInfo> = Object(info)
  if (typeof scheme !== 'string') throw new InvalidArgument('auth: scheme must be a text, such as digest')
  if (typeof secret !== 'string' && !(secret instanceof Uint8Array))
    throw new InvalidArgument(`auth of the scheme ${scheme} must be a text or bytes, such as user:password for digest`)
  const request = auth(scheme, typeof secret === 'string' ? Buffer.from(secret) : secret)
  const bytes = payloadBytes(request.frame)
  if (bytes <= MAX_AUTH_BYTES) return request
  throw new InvalidArgument(
    `auth of the scheme ${scheme} must have at most ${MAX_AUTH_BYTES} bytes, which is the servers' limit, got ${bytes}`,
  )
}

/**
 * Default `jute.maxbuffer` of servers: they close a connection on which a larger frame arrives, so no connection would
 * last.
 */
const MAX_AUTH_BYTES = 1_048_575

function undecidedError({ wasSent }: ClientIdentity): ZooKeeperError {
  if (wasSent) return new ConnectionLoss('addAuth: the connection was lost before the answer came')
  const message = 'addAuth: not sent, the client is closed or has lost its session for good'
  return new NotSent(message, { retryable: false })
}
