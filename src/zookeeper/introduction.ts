/**
 * What every connection begins with, behind attaching and before anything that anybody asked: who we are, and what we
 * watch.
 *
 * SASL is finished before anything else is sent, because its answers overtake others and cannot be told from them. The
 * other identities, and what arms the watches, follow in one write: a server takes identities in before it looks at what
 * is behind them.
 */
import { IncompatibleVersion } from '../core/errors.ts'
import { monotonic } from '../core/time.ts'
import { formatEndpoint } from './connect-string.ts'
import type { Connection } from './connection.ts'
import { AuthFailed, Unimplemented } from './errors.ts'
import { ConnectionFault } from './faults.ts'
import { OPCODE } from './opcodes.ts'
import { Pending } from './pending.ts'
import { auth, type Request, request } from './requests.ts'
import { DigestMd5, type SaslCredentials } from './sasl.ts'

/** What a client says of itself: `digest` with `user:password`, for one. */
export interface AuthInfo {
  readonly scheme: string
  /** As the scheme wants it. Anybody on the way can read it where there is no TLS. */
  readonly auth: string | Uint8Array
}

export class Introduction {
  readonly #sasl: SaslCredentials | undefined
  readonly #timeout: number
  readonly #known: AuthInfo[]
  /** The connection that was told so far who we are. */
  #introduced: Connection | undefined
  #versionKnown = false

  /** @param options.timeout milliseconds that SASL may take */
  constructor(options: {
    readonly sasl?: SaslCredentials | undefined
    readonly auth: readonly AuthInfo[]
    readonly timeout: number
  }) {
    this.#sasl = options.sasl
    this.#timeout = options.timeout
    this.#known = [...options.auth]
  }

  /**
   * Two round trips with SASL; none without.
   *
   * @throws AuthFailed when the server does not accept the password, or does not know it itself
   */
  async authenticate(connection: Connection): Promise<void> {
    if (!this.#sasl) return
    const exchange = new DigestMd5(this.#sasl)
    const late = () => connection.destroy(new ConnectionFault('late', `SASL took longer than ${this.#timeout} ms`))
    const timer = setTimeout(late, this.#timeout)
    try {
      const challenge = await ask(connection, saslToken(new Uint8Array(0)))
      const proof = await ask(connection, saslToken(exchange.respond(challenge)))
      exchange.verify(proof)
    } catch (error) {
      if (!(error instanceof AuthFailed) || error.zkCode === undefined) throw error
      const where = formatEndpoint(connection.server)
      const message = `${where} does not accept the SASL password of ${JSON.stringify(this.#sasl.username)}`
      throw new AuthFailed(message, { zkCode: error.zkCode, cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Gives all other identities and arms the watches. The request for that came with ZooKeeper 3.6, so the first answer to
   * it also tells whether the server is new enough, for one round trip in the life of a client.
   *
   * @param options.fault told of what the server refused after this has returned; such a connection is no good
   * @throws IncompatibleVersion, AuthFailed
   */
  async begin(
    connection: Connection,
    options: { readonly arming: readonly Request<undefined>[]; readonly fault: (error: unknown) => void },
  ): Promise<void> {
    const first = [...this.#known.map(authRequest), ...options.arming].map((each) => new Pending(each, monotonic()))
    this.#introduced = connection
    connection.send(first)
    const accepted = Promise.all(first.map((pending) => pending.promise))
    accepted.catch(options.fault)
    if (this.#versionKnown) return
    try {
      await accepted
      this.#versionKnown = true
    } catch (error) {
      if (!(error instanceof Unimplemented)) throw error
      const where = formatEndpoint(connection.server)
      const message = `the ZooKeeper server at ${where} is too old: 3.6 or newer is needed`
      throw new IncompatibleVersion(message, { cause: error })
    }
  }

  /**
   * One more identity, from the next connection on and, where there is one, on this.
   *
   * @throws AuthFailed when the server does not accept it; it is forgotten then
   */
  async add(info: AuthInfo, connection: Connection | undefined): Promise<void> {
    this.#known.push(info)
    if (!connection || connection !== this.#introduced) return
    try {
      await ask(connection, authRequest(info))
    } catch (error) {
      // Where the connection broke, the next one is told.
      if (!(error instanceof AuthFailed)) return
      this.#known.splice(this.#known.indexOf(info), 1)
      throw error
    }
  }
}

function ask<T>(connection: Connection, asked: Request<T>): Promise<T> {
  const pending = new Pending(asked, monotonic())
  connection.send([pending])
  return pending.promise
}

function authRequest({ scheme, auth: given }: AuthInfo): Request<undefined> {
  return auth(scheme, typeof given === 'string' ? Buffer.from(given) : given)
}

function saslToken(token: Uint8Array): Request<Uint8Array> {
  return request({
    operation: 'sasl',
    opcode: OPCODE.sasl,
    write: (writer) => writer.bytes(token),
    read: (body) => body.bytes() ?? new Uint8Array(0),
  })
}
