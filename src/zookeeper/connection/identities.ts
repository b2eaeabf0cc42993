/**
 * Who this client says it is, beside SASL, and what servers made of it.
 *
 *     given   before the first connection: part of what the client is, so that a refusal is final
 *     added   later: not accepted until a server has said so. Where the answer is lost the next connection asks again; who
 *             is refused is forgotten, or no connection would last from then on
 */
import { createDeferred, type Deferred } from '../../core/async/abort.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { AuthFailed, ConnectionLoss, NotSent, type ZooKeeperError } from '../protocol/errors.ts'
import { auth, payloadBytes, type Request } from '../protocol/requests.ts'
import { ConnectionFault } from './faults.ts'

/** What a client says of itself: `digest` with `user:password`, for one. */
export interface AuthInfo {
  readonly scheme: string
  /** As the scheme wants it. Anybody on the way can read it where there is no TLS. */
  readonly auth: string | Uint8Array
}

export interface ClientIdentity {
  readonly origin: 'given' | 'added'
  readonly scheme: string
  /** Encoded once: what the caller does to the bytes afterwards changes nothing. */
  readonly request: Request<undefined>
  /** Settled when a server has accepted or refused it. */
  readonly decided: Deferred<void>
  /** A server was asked. */
  asked: boolean
  accepted: boolean
}

export class Identities {
  readonly #all: ClientIdentity[] = []
  #closed = false

  /** @throws InvalidArgument for what is no identity */
  constructor(given: readonly AuthInfo[]) {
    for (const info of given) this.add(info, 'given')
  }

  /** In the order in which they came. */
  get all(): readonly ClientIdentity[] {
    return this.#all
  }

  /**
   * The one there is already, if it is the same.
   *
   * @throws InvalidArgument
   */
  add(info: AuthInfo, origin: ClientIdentity['origin']): ClientIdentity {
    const request = toAuthRequest(info)
    const same = this.#all.find((each) => each.request.frame.equals(request.frame))
    if (same) return same
    const identity = { origin, scheme: info.scheme, request, decided: createDeferred(), asked: false, accepted: false }
    // Nobody may be waiting.
    identity.decided.promise.catch(() => undefined)
    if (this.#closed) identity.decided.reject(undecidedError(identity))
    else this.#all.push(identity)
    return identity
  }

  /**
   * Waits for what a server says to it.
   *
   * @throws AuthFailed when it refuses one that was given, or accepted before
   * @throws ConnectionFault when it refuses one that was added: the next connection will do without
   */
  async decide(identity: ClientIdentity, answer: Promise<undefined>): Promise<void> {
    identity.asked = true
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

  /** No server will be asked any more. */
  close(): void {
    this.#closed = true
    for (const identity of this.#all) if (!identity.accepted) identity.decided.reject(undecidedError(identity))
  }
}

/** @throws InvalidArgument, without the secret */
function toAuthRequest(info: AuthInfo): Request<undefined> {
  const { scheme, auth: given }: Partial<AuthInfo> = Object(info)
  if (typeof scheme !== 'string') throw new InvalidArgument('auth: the scheme is a text, such as digest')
  if (typeof given !== 'string' && !(given instanceof Uint8Array))
    throw new InvalidArgument(`auth: of scheme ${scheme} needs a text or bytes, such as user:password for digest`)
  const request = auth(scheme, typeof given === 'string' ? Buffer.from(given) : given)
  const bytes = payloadBytes(request.frame)
  if (bytes <= MAX_AUTH_BYTES) return request
  throw new InvalidArgument(
    `auth: of scheme ${scheme} has ${bytes} bytes, more than the ${MAX_AUTH_BYTES} that a server takes`,
  )
}

/** `jute.maxbuffer` as servers ship: they hang up on what is larger, and would do so at every connection from then on. */
const MAX_AUTH_BYTES = 1_048_575

function undecidedError({ asked }: ClientIdentity): ZooKeeperError {
  if (asked) return new ConnectionLoss('addAuth: the connection was lost before the answer came')
  const message = 'addAuth: not sent, the client is closed or has lost its session for good'
  return new NotSent(message, { retryable: false })
}
