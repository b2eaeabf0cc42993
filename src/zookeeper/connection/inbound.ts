/**
 * Hands on what a connection receives, in the order in which the server sent it.
 *
 * Events of watches come between answers, and whoever listens to both sees them in that order. Each run of events is
 * handed on, synchronously, before the answer behind it is looked at. Answers settle promises, and what awaits those runs
 * later; so before an event behind an answer is handed on, it is left to run first.
 */
import { FrameReader } from '../protocol/frames.ts'
import { JuteReader } from '../protocol/jute.ts'
import { XID } from '../protocol/opcodes.ts'
import { type ReplyHeader, readReplyHeader, readWatchEvent, type WatchEvent } from '../protocol/records.ts'

/** Everything is called synchronously; what throws ends the reading and comes out in `fault`. */
export interface FrameHandlers {
  /** False when nothing is to be looked at any more. */
  isOpen(): boolean
  /** The same, asked when some time has gone by. */
  isStillOpen(): boolean
  /** The first frame of a connection; it has no header. */
  onFirstFrame(body: JuteReader): void
  onReply(header: ReplyHeader, body: JuteReader): void
  onEvents(batch: readonly WatchEvent[]): void
  /** All that was received is handed on, and there were answers in it. */
  onRepliesHandled(): void
  onError(error: unknown): void
}

interface InboundMessage {
  /** The first frame has none. */
  readonly header: ReplyHeader | undefined
  readonly body: JuteReader
}

export class FrameDispatcher {
  readonly #frames: FrameReader
  readonly #actions: FrameHandlers
  #events: WatchEvent[] = []
  #begun = false
  #yielding = false

  constructor(maxReplyBytes: number, actions: FrameHandlers) {
    this.#frames = new FrameReader(maxReplyBytes)
    this.#actions = actions
  }

  /** Whether anything but silence came. */
  get hasReceived(): boolean {
    return this.#begun
  }

  add(chunk: Buffer): void {
    this.#frames.add(chunk)
    if (!this.#yielding) this.#read()
  }

  #read(held?: InboundMessage): void {
    let answered = false
    try {
      for (let next = held ?? this.#next(); next && this.#actions.isOpen(); next = this.#next()) {
        if (next.header?.xid === XID.watchEvent) {
          if (answered) {
            this.#yield(next)
            break
          }
          const event = readWatchEvent(next.body)
          if (event) this.#events.push(event)
        } else {
          this.#handOnEvents()
          // A handler may have closed the client; what was in flight is settled then.
          if (!this.#actions.isOpen()) return
          if (next.header) this.#actions.onReply(next.header, next.body)
          else this.#actions.onFirstFrame(next.body)
          answered = true
        }
      }
      this.#handOnEvents()
    } catch (error) {
      this.#actions.onError(error)
      return
    }
    if (answered && this.#actions.isOpen()) this.#actions.onRepliesHandled()
  }

  #next(): InboundMessage | undefined {
    const frame = this.#frames.next()
    if (!frame) return undefined
    const body = new JuteReader(frame)
    const header = this.#begun ? readReplyHeader(body) : undefined
    this.#begun = true
    return { header, body }
  }

  /** Reads on, from `held`, when everything that waited for the answers so far has run. */
  #yield(held: InboundMessage): void {
    this.#yielding = true
    // Microtasks run until there are none left; ticks that were set in one run after that.
    queueMicrotask(() =>
      process.nextTick(() => {
        this.#yielding = false
        if (this.#actions.isStillOpen()) this.#read(held)
      }),
    )
  }

  #handOnEvents(): void {
    if (this.#events.length === 0) return
    const batch = this.#events
    this.#events = []
    this.#actions.onEvents(batch)
  }
}
