/**
 * The handshake of every connection, after attaching and before other requests: identities and watches.
 *
 * SASL is finished before anything else is sent, because its answers overtake others and cannot be distinguished from
 * them. The other identities and the arming of watches follow in one write: a server processes identities before it
 * looks at later requests.
 */
import { IncompatibleVersion } from '../../core/errors.ts'
import { monotonic, startTimer } from '../../core/time.ts'
import { formatEndpoint } from '../protocol/connect-string.ts'
import { AuthFailed, Unimplemented } from '../protocol/errors.ts'
import { OPCODE } from '../protocol/opcodes.ts'
import { type Request, request } from '../protocol/requests.ts'
import type { Connection } from './connection.ts'
import { ConnectionFault } from './faults.ts'
import { type AuthInfo, Identities } from './identities.ts'
import { PendingRequest } from './pending.ts'
import { DigestMd5, type SaslCredentials } from './sasl.ts'

export class Handshake {
  readonly #sasl: SaslCredentials | undefined
  readonly #timeout: number
  readonly #identities: Identities
  /** The newest connection on which the identities were sent. */
  #authenticatedConnection: Connection | undefined
  #versionKnown = false

  /**
   * @param options.timeout time limit for SASL in milliseconds
   * @throws InvalidArgument for an invalid identity
   */
  constructor(options: {
    readonly sasl?: SaslCredentials | undefined
    readonly auth: readonly AuthInfo[]
    readonly timeout: number
  }) {
    this.#sasl = options.sasl
    this.#timeout = options.timeout
    this.#identities = new Identities(options.auth)
  }

  /**
   * Authenticates with SASL. Takes two round trips; none without SASL.
   *
   * @throws AuthFailed when the server does not accept the password
   * @throws ConnectionFault when the server has no SASL, or does not know the password itself
   */
  async authenticate(connection: Connection): Promise<void> {
    if (!this.#sasl) return
    const exchange = new DigestMd5(this.#sasl)
    const late = () => connection.destroy(new ConnectionFault('late', `SASL took longer than ${this.#timeout} ms`))
    const timer = startTimer(late, this.#timeout)
    try {
      const challenge = await sendAuth(connection, saslRequest(new Uint8Array(0)))
      const proof = await sendAuth(connection, saslRequest(exchange.respond(challenge)))
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
   * Sends all other identities and arms the watches. ZooKeeper 3.6 introduced the request for that, so its first answer
   * also shows whether the server is new enough, for one round trip in the life of a client.
   *
   * @param options.fault receives errors that arrive after this has returned; such a connection must be closed
   * @throws IncompatibleVersion, AuthFailed
   */
  async begin(
    connection: Connection,
    options: { readonly arming: readonly Request<undefined>[]; readonly fault: (error: unknown) => void },
  ): Promise<void> {
    const identities = this.#identities.all.map((identity) => ({ identity, ...toAuthSent(identity.request) }))
    const arming = options.arming.map(toAuthSent)
    this.#authenticatedConnection = connection
    connection.send([...identities, ...arming].map(({ pending }) => pending))
    const accepted = Promise.all([
      ...identities.map(({ identity, pending }) => this.#identities.decide(identity, pending.promise)),
      ...arming.map(({ pending }) => pending.promise),
    ])
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
   * Adds an identity to this connection and all later ones. Resolves when a server has accepted it.
   *
   * @param connection the current one, if any
   * @throws InvalidArgument for an invalid identity
   * @throws AuthFailed when the server does not accept it; it is removed then
   * @throws NotSent, ConnectionLoss when no connection will follow
   */
  async add(info: AuthInfo, connection: Connection | undefined): Promise<void> {
    const identity = this.#identities.add(info, 'added')
    if (connection && connection === this.#authenticatedConnection && !identity.wasSent) {
      // The identity reports the result. If the connection breaks, it is sent on the next one.
      this.#identities.decide(identity, sendAuth(connection, identity.request)).catch(() => undefined)
    }
    return identity.decided.promise
  }

  /**
   * Adds an identity before the first connection, as if it had been an option.
   *
   * @throws InvalidArgument
   */
  addBeforeConnect(info: AuthInfo): void {
    this.#identities.add(info, 'given')
  }

  /** Rejects pending identities: no connection will follow. */
  close(): void {
    this.#identities.close()
  }
}

function toAuthSent<T>(request: Request<T>): { readonly pending: PendingRequest<T> } {
  return { pending: new PendingRequest(request, monotonic()) }
}

function sendAuth<T>(connection: Connection, request: Request<T>): Promise<T> {
  const { pending } = toAuthSent(request)
  connection.send([pending])
  return pending.promise
}

function saslRequest(token: Uint8Array): Request<Uint8Array> {
  return request({
    operation: 'sasl',
    opcode: OPCODE.sasl,
    write: (writer) => writer.bytes(token),
    read: (body) => body.bytes() ?? new Uint8Array(0),
  })
}
