/**
 * One TCP connection to one server: attach, pipeline requests, match answers, notice when it is dead.
 *
 * Answers come in the order of the requests, so the oldest request that waits is the one that is answered, and its
 * number must be the answer's. Where it is not, nothing that follows can be trusted and the connection is torn down.
 *
 * Events of watches come between answers, and whoever listens to both sees them in the order in which the server sent
 * them. Each run of events is handed on, synchronously, before the answer behind it is looked at. Answers settle promises,
 * and what awaits those runs later; so before an event behind an answer is handed on, it is left to run first.
 */
import { connect, type Socket } from 'node:net'
import { type Deferred, deferred } from '../core/abort.ts'
import { NotConnected } from '../core/errors.ts'
import type { Clock, Instant } from './clock.ts'
import { type Endpoint, formatEndpoint } from './connect-string.ts'
import { ConnectionLoss } from './errors.ts'
import { Fifo } from './fifo.ts'
import { FrameReader } from './frames.ts'
import { Heartbeat } from './heartbeat.ts'
import { JuteReader, MalformedBytes } from './jute.ts'
import { XID } from './opcodes.ts'
import { Pending } from './pending.ts'
import {
  type ConnectRequest,
  type ConnectResponse,
  type ReplyHeader,
  readConnectResponse,
  readReplyHeader,
  readWatchEvent,
  type WatchEvent,
} from './records.ts'
import { connectFrame, numberFrame, ping, xidAfter } from './requests.ts'

/** What a connection tells the one who opened it. Everything is called synchronously. */
export interface ConnectionOwner {
  /** Asked before anything received is looked at and before a ping is sent; false when the session is given up. */
  alive(): boolean
  events(batch: readonly WatchEvent[]): void
  /** An answer came to a request that was sent then; `zxid` is the newest transaction it shows, 0n if it shows none. */
  answered(sentAt: Instant, zxid: bigint): void
  /** There is room in the socket again. */
  drained(): void
  /** It is over. Requests under way were rejected as unknown. */
  closed(cause: Error): void
}

export interface ConnectionOptions {
  readonly endpoint: Endpoint
  readonly connectTimeout: number
  readonly maxReplyBytes: number
  readonly clock: Clock
}

interface Message {
  readonly header: ReplyHeader | undefined
  readonly body: JuteReader
}

export class Connection {
  readonly #options: ConnectionOptions
  readonly #owner: ConnectionOwner
  readonly #frames: FrameReader
  readonly #inFlight = new Fifo<Pending>()
  #socket: Socket | undefined
  #attaching: Deferred<ConnectResponse> | undefined
  #attachTimer: NodeJS.Timeout | undefined
  #heartbeat: Heartbeat | undefined
  #events: WatchEvent[] = []
  #yielding = false
  #xid = 0
  #full = false
  #over = false

  constructor(options: ConnectionOptions, owner: ConnectionOwner) {
    this.#options = options
    this.#owner = owner
    this.#frames = new FrameReader(options.maxReplyBytes)
  }

  /** False once it is over or while the socket holds more than the network takes. */
  get writable(): boolean {
    return !this.#over && !this.#full
  }

  /**
   * Connects and asks for a session. One round trip after TCP's own.
   *
   * @throws NotConnected when the server cannot be reached, hangs up without a word, or does not answer in time
   */
  attach(request: ConnectRequest): Promise<ConnectResponse> {
    const attaching = deferred<ConnectResponse>()
    if (this.#over) return Promise.reject(new NotConnected('the connection was given up'))
    this.#attaching = attaching
    const { host, port } = this.#options.endpoint
    const socket = connect({ host, port, noDelay: true })
    this.#socket = socket
    const late = () => this.destroy(new Error(`no answer within ${this.#options.connectTimeout} ms`))
    this.#attachTimer = setTimeout(late, this.#options.connectTimeout)
    let fault: Error | undefined
    socket.on('connect', () => socket.write(connectFrame(request)))
    socket.on('data', (chunk: Buffer) => this.#received(chunk))
    socket.on('drain', () => this.#drained())
    socket.on('error', (error) => {
      fault = error
    })
    socket.on('close', () => this.destroy(fault ?? new Error('the server closed the connection')))
    return attaching.promise
  }

  /** From now on pings when there is nothing else to send, and gives the connection up when nothing is heard. */
  keepAlive(sessionTimeout: number): void {
    if (this.#over) return
    this.#heartbeat = new Heartbeat(sessionTimeout, {
      ping: () => this.#ping(),
      silent: (ms) => this.destroy(new Error(`nothing was heard of the server for ${Math.round(ms)} ms`)),
    })
    this.#heartbeat.start()
  }

  /** Sends requests in one write. They are rejected as unknown if the connection breaks before they are answered. */
  send(requests: readonly Pending[]): void {
    const sentAt = this.#options.clock()
    const frames: Buffer[] = []
    for (const pending of requests) {
      if (pending.request.xid === undefined) this.#xid = xidAfter(this.#xid)
      pending.xid = pending.request.xid ?? this.#xid
      pending.sentAt = sentAt
      numberFrame(pending.request.frame, pending.xid)
      this.#inFlight.push(pending)
      frames.push(pending.request.frame)
    }
    const [only] = frames
    const bytes = only && frames.length === 1 ? only : Buffer.concat(frames)
    if (this.#over || !this.#socket) {
      this.#loseRequests(new Error('the connection is closed'))
      return
    }
    this.#heartbeat?.sent()
    this.#full = !this.#socket.write(bytes)
  }

  /** Ends it at once, if it has not ended already. */
  destroy(cause: Error): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#attachTimer)
    this.#heartbeat?.stop()
    this.#socket?.destroy()
    const where = formatEndpoint(this.#options.endpoint)
    this.#attaching?.reject(new NotConnected(`${where}: ${messageOf(cause)}`, { cause }))
    this.#owner.closed(cause)
    this.#loseRequests(cause)
  }

  #ping(): void {
    if (!this.#owner.alive() || this.#over) return
    const pending = new Pending(ping(), 0)
    // Nobody waits for it: if the connection breaks, that is told in other ways.
    pending.promise.catch(() => undefined)
    this.send([pending])
  }

  #loseRequests(cause: Error): void {
    const how = `the connection to ${formatEndpoint(this.#options.endpoint)} was lost before the answer came`
    for (const pending of this.#inFlight.drain()) pending.fail(lost(pending, how, cause))
  }

  #drained(): void {
    this.#full = false
    if (!this.#over) this.#owner.drained()
  }

  #received(chunk: Buffer): void {
    if (this.#over || !this.#owner.alive()) return
    this.#heartbeat?.received()
    this.#frames.add(chunk)
    if (!this.#yielding) this.#read()
  }

  #read(held?: Message): void {
    let answered = false
    try {
      for (let next = held ?? this.#next(); next && !this.#over; next = this.#next()) {
        if (next.header?.xid === XID.watchEvent) {
          if (answered) {
            this.#yield(next)
            return
          }
          const event = readWatchEvent(next.body)
          if (event) this.#events.push(event)
        } else {
          this.#handOnEvents()
          // A handler may have closed the client; what was in flight is settled then.
          if (this.#over) return
          this.#answer(next)
          answered = true
        }
      }
      this.#handOnEvents()
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #next(): Message | undefined {
    const frame = this.#frames.next()
    if (!frame) return undefined
    const body = new JuteReader(frame)
    // The first frame of a connection has no header.
    return { header: this.#attaching ? undefined : readReplyHeader(body), body }
  }

  /** Reads on, from `held`, when everything that waited for the answers so far has run. */
  #yield(held: Message): void {
    this.#yielding = true
    // Microtasks run until there are none left; ticks that were set in one run after that.
    queueMicrotask(() =>
      process.nextTick(() => {
        this.#yielding = false
        if (!this.#over && this.#owner.alive()) this.#read(held)
      }),
    )
  }

  #answer({ header, body }: Message): void {
    if (!header) {
      this.#attached(body)
      return
    }
    const pending = this.#inFlight.shift()
    if (!pending?.sentAt) throw new MalformedBytes(`an answer (${header.xid}) to nothing that was asked`)
    try {
      if (pending.xid !== header.xid) {
        throw new MalformedBytes(`an answer to request ${header.xid} where ${pending.xid} was the oldest one waiting`)
      }
      this.#owner.answered(pending.sentAt, header.xid > 0 ? header.zxid : 0n)
      pending.answer(header, body)
    } catch (error) {
      pending.fail(lost(pending, 'the answer cannot be read', error))
      throw error
    }
  }

  #attached(body: JuteReader): void {
    const response = readConnectResponse(body)
    clearTimeout(this.#attachTimer)
    this.#attaching?.resolve(response)
    this.#attaching = undefined
  }

  #handOnEvents(): void {
    if (this.#events.length === 0) return
    const batch = this.#events
    this.#events = []
    this.#owner.events(batch)
  }
}

/** An attempt at several addresses of one name fails with an error that has a code and no message. */
function messageOf(cause: Error & { code?: string }): string {
  return cause.message || (cause.code ?? cause.name)
}

function lost({ request: { operation, path } }: Pending, how: string, cause: unknown): ConnectionLoss {
  const subject = path === undefined ? operation : `${operation} ${path}`
  return new ConnectionLoss(`${subject}: ${how}; it may have happened`, { cause, path })
}
