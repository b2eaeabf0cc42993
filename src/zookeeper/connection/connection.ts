/**
 * A connection to a server: it attaches, pipelines requests, matches answers, and detects a dead connection.
 *
 * Answers come in the order of the requests, so each answer belongs to the oldest waiting request and must have its
 * number. If not, the following bytes cannot be trusted and the connection is closed. Only answers to `auth` overtake
 * others; they are in order among themselves.
 */
import type { Socket } from 'node:net'
import { createDeferred, type Deferred } from '../../core/async/abort.ts'
import { FifoQueue } from '../../core/collections/fifo.ts'
import { asError, NotConnected } from '../../core/errors.ts'
import { type Clock, type Instant, startTimer } from '../../core/time.ts'
import { formatEndpoint } from '../protocol/connect-string.ts'
import { connectionLossError } from '../protocol/errors.ts'
import { type JuteReader, MalformedBytes } from '../protocol/jute.ts'
import { XID } from '../protocol/opcodes.ts'
import {
  type ConnectRequest,
  type ConnectResponse,
  REPLY_HEADER_BYTES,
  type ReplyHeader,
  readConnectResponse,
  readReplyHeader,
  type WatchEvent,
} from '../protocol/records.ts'
import { connectFrame, numberFrame, payloadBytes, ping, type RequestNumbers } from '../protocol/requests.ts'
import type { Counters } from './counters.ts'
import { ConnectionFault, isFinal } from './faults.ts'
import { FrameDispatcher } from './frame-dispatcher.ts'
import { Heartbeat } from './heartbeat.ts'
import type { Server } from './hosts.ts'
import { PendingRequest, type RetryCheck } from './pending.ts'
import { toQuorumAck } from './quorum-ack.ts'
import { openSocket, type TlsOptions } from './socket.ts'
import { explainTlsError } from './tls-faults.ts'

/** Callbacks of a connection. All are called synchronously. */
export interface ConnectionOwner {
  /** Returns whether the session is alive. Checked before received bytes are processed and before a ping is sent. */
  isAlive(): boolean
  events(batch: readonly WatchEvent[]): void
  /**
   * Reports an answer, and when its request was sent. Its `zxid` is the newest transaction that the server had applied.
   */
  replyReceived(sentAt: Instant, header: ReplyHeader): void
  /** Reports that this answer came from the leader, or was agreed on by a quorum (see `session/lease.ts`). */
  quorumAcknowledged(what: 'echo' | 'proof', sentAt: Instant): void
  /** Reports that there may be room for more requests, in the socket or in flight. */
  drained(): void
  /**
   * Reports that the connection is closed. Requests in flight are rejected as unknown.
   *
   * @param unanswered the size of the largest of them in bytes
   */
  closed(cause: Error, unanswered: number): void
  /** Whether another connection, or another session, may follow. */
  mayRetry: RetryCheck
}

export interface ConnectionOptions {
  readonly server: Server
  readonly tls?: TlsOptions | undefined
  readonly connectTimeout: number
  readonly maxReplyBytes: number
  readonly clock: Clock
  readonly counters: Counters
  /** Request numbers, shared by all connections of a client. */
  readonly numbers: RequestNumbers
}

/** Error codes of the operating system for a connection that the peer closed. */
const HANG_UP_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE'])

export class Connection {
  readonly #options: ConnectionOptions
  readonly #owner: ConnectionOwner
  readonly #inbound: FrameDispatcher
  readonly #inFlight = new FifoQueue<PendingRequest>()
  readonly #authInFlight = new FifoQueue<PendingRequest>()
  #socket: Socket | undefined
  #attaching: Deferred<ConnectResponse> | undefined
  #attachTimer: NodeJS.Timeout | undefined
  #heartbeat: Heartbeat | undefined
  #isReady = false
  #isFull = false
  #isClosed = false

  constructor(options: ConnectionOptions, owner: ConnectionOwner) {
    this.#options = options
    this.#owner = owner
    this.#inbound = new FrameDispatcher(options.maxReplyBytes, {
      isOpen: () => !this.#isClosed,
      isStillOpen: () => !this.#isClosed && owner.isAlive(),
      onFirstFrame: (body) => this.#attached(body),
      onReply: (header, body) => this.#handleReply(header, body),
      onEvents: (batch) => owner.events(batch),
      onRepliesHandled: () => owner.drained(),
      onError: (error) => this.destroy(asError(error)),
    })
  }

  get server(): Server {
    return this.#options.server
  }

  /** Whether requests can be sent: false once it is closed, or while the socket's buffer is full. */
  get writable(): boolean {
    return !this.#isClosed && !this.#isFull
  }

  /** Number of requests that were sent and not answered yet. */
  get inFlight(): number {
    return this.#inFlight.size
  }

  /**
   * Connects and requests a session. Takes one round trip after the round trips of TCP and TLS.
   *
   * @throws NotConnected when the server cannot be reached, closes the connection without an answer, or does not answer
   * in time
   */
  async attach(request: ConnectRequest): Promise<ConnectResponse> {
    if (this.#isClosed) throw new NotConnected('the connection was given up')
    const { server, tls, connectTimeout } = this.#options
    const frame = connectFrame(request)
    const socket = openSocket(server, tls, () => {
      this.#isReady = true
      this.#write(frame)
    })
    const attaching = createDeferred<ConnectResponse>()
    this.#attaching = attaching
    this.#socket = socket
    const late = () => this.destroy(new ConnectionFault('late', `no answer within ${Math.round(connectTimeout)} ms`))
    this.#attachTimer = startTimer(late, connectTimeout)
    let fault: Error | undefined
    socket.on('data', (chunk: Buffer) => this.#received(chunk))
    socket.on('drain', () => this.#drained())
    socket.on('error', (error) => {
      fault = error
    })
    socket.on('close', () => this.destroy(this.#toCloseError(fault)))
    return attaching.promise
  }

  /** Starts to ping when nothing else is sent, and to close the connection when the server is silent. */
  keepAlive(sessionTimeout: number): void {
    if (this.#isClosed) return
    const silent = (ms: number) => {
      this.destroy(new ConnectionFault('silent', `nothing was received from the server for ${Math.round(ms)} ms`))
    }
    this.#heartbeat = new Heartbeat(sessionTimeout, { ping: () => this.#ping(), onSilence: silent })
    this.#heartbeat.start()
  }

  /** Sends requests in one write. They are rejected as unknown if the connection breaks before they are answered. */
  send(requests: readonly PendingRequest[]): void {
    const sentAt = this.#options.clock()
    const frames: Buffer[] = []
    for (const pending of requests) {
      const { xid, frame, operation } = pending.request
      pending.xid = xid ?? this.#options.numbers.next()
      pending.sentAt = sentAt
      numberFrame(frame, pending.xid)
      if (xid === XID.auth) this.#authInFlight.push(pending)
      else this.#inFlight.push(pending)
      frames.push(frame)
      this.#options.counters.countsFor(operation).sent++
    }
    if (this.#isClosed || !this.#socket) {
      this.#loseRequests(
        [...this.#inFlight.drain(), ...this.#authInFlight.drain()],
        new Error('the connection is closed'),
      )
      return
    }
    const [only] = frames
    this.#heartbeat?.sent()
    this.#isFull = !this.#write(only && frames.length === 1 ? only : Buffer.concat(frames))
  }

  /** Closes the connection at once, if it is still open. */
  destroy(cause: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#attachTimer)
    this.#heartbeat?.stop()
    this.#socket?.destroy()
    const where = formatEndpoint(this.#options.server)
    this.#attaching?.reject(new NotConnected(`${where}: ${errorMessage(cause)}`, { cause }))
    const lost = [...this.#inFlight.drain(), ...this.#authInFlight.drain()]
    this.#owner.closed(
      cause,
      lost.reduce((most, { request: { frame } }) => Math.max(most, payloadBytes(frame)), 0),
    )
    this.#loseRequests(lost, cause)
  }

  #write(bytes: Buffer): boolean {
    this.#options.counters.bytesOut += bytes.length
    return this.#socket?.write(bytes) ?? false
  }

  #ping(): void {
    if (!this.#owner.isAlive() || this.#isClosed) return
    const pending = new PendingRequest(ping(), 0)
    // No caller waits for it: a broken connection is reported in other ways.
    pending.promise.catch(() => undefined)
    this.send([pending])
  }

  #toCloseError(fault: NodeJS.ErrnoException | undefined): Error {
    if (!this.#attaching) {
      if (!fault) return new ConnectionFault('closed', 'the server closed the connection')
      return new ConnectionFault('reset', errorMessage(fault), { cause: fault })
    }
    const explained = fault && this.#options.tls && explainTlsError(fault)
    if (explained) return explained
    // The server accepted the connection and closed it at once, sometimes so fast that the system reports the close
    // before the connect.
    const taken = this.#isReady || fault === undefined || HANG_UP_CODES.has(fault.code ?? '')
    if (!taken) return fault
    const said = fault ? ` (${errorMessage(fault)})` : ''
    return new ConnectionFault('hung-up', `the server closed the connection without an answer${said}`, { cause: fault })
  }

  #loseRequests(lost: readonly PendingRequest[], cause: Error): void {
    const how = `the connection to ${formatEndpoint(this.#options.server)} was lost before the answer came`
    for (const pending of lost) {
      this.#options.counters.countsFor(pending.request.operation).unknown++
      pending.fail(this.#rejectLost(pending, how, cause))
    }
  }

  #rejectLost({ request }: PendingRequest, how: string, cause: unknown): Error {
    // The same answer would be unreadable again, and after a final fault no connection follows.
    const hopeless = cause instanceof MalformedBytes || isFinal(cause)
    return connectionLossError(request, how, { cause, again: !hopeless && this.#owner.mayRetry('connection') })
  }

  #drained(): void {
    this.#isFull = false
    if (!this.#isClosed) this.#owner.drained()
  }

  #received(chunk: Buffer): void {
    if (this.#isClosed || !this.#owner.isAlive()) return
    this.#options.counters.bytesIn += chunk.length
    this.#heartbeat?.received()
    this.#inbound.add(chunk)
  }

  #handleReply(header: ReplyHeader, body: JuteReader): void {
    const pending = (header.xid === XID.auth ? this.#authInFlight : this.#inFlight).shift()
    if (!pending?.sentAt) throw new MalformedBytes(`an answer (${header.xid}) without a request`)
    const counts = this.#options.counters.countsFor(pending.request.operation)
    try {
      if (pending.xid !== header.xid) {
        throw new MalformedBytes(
          `an answer to request ${header.xid} while ${pending.xid} is the oldest waiting request`,
        )
      }
      this.#owner.replyReceived(pending.sentAt, header)
      const said = toQuorumAck(pending.request.frame, header.code)
      if (said) this.#owner.quorumAcknowledged(said, pending.sentAt)
      counts[pending.handleReply(header, body, this.#owner.mayRetry)]++
    } catch (error) {
      counts.unknown++
      pending.fail(this.#rejectLost(pending, 'the answer cannot be read', error))
      throw error
    }
  }

  #attached(body: JuteReader): void {
    if (body.remaining === REPLY_HEADER_BYTES) {
      const { code } = readReplyHeader(body)
      throw new ConnectionFault('read-only', `the server has no quorum and grants no session (error ${code})`)
    }
    const response = readConnectResponse(body)
    clearTimeout(this.#attachTimer)
    this.#attaching?.resolve(response)
    this.#attaching = undefined
  }
}

/** Returns a message for any error: some of the system's errors have a code and no message. */
function errorMessage(cause: NodeJS.ErrnoException): string {
  return cause.message || (cause.code ?? cause.name)
}
