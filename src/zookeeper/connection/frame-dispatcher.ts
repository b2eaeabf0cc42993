/**
 * Dispatches the frames that a connection receives, in the order in which the server sent them.
 *
 * Events of watches come between answers, and code that receives both sees them in that order. Each run of events is
 * dispatched synchronously before the answer after it. Answers settle promises, whose continuations run later; so
 * before an event after an answer is dispatched, these continuations run.
 */
import { FrameReader } from '../protocol/frames.ts'
import { JuteReader } from '../protocol/jute.ts'
import { XID } from '../protocol/opcodes.ts'
import {
  REPLY_HEADER_BYTES,
  type ReplyHeader,
  readReplyHeader,
  readWatchEvent,
  type WatchEvent,
} from '../protocol/records.ts'

/** Callbacks for frames. All are called synchronously; an exception ends the reading and is passed to `onError`. */
export interface FrameHandlers {
  /** Returns whether frames are to be processed. */
  isOpen(): boolean
  /** Returns whether frames are still to be processed, after some time has passed. */
  isStillOpen(): boolean
  /** Receives the first frame of a connection, which has no header. */
  onFirstFrame(body: JuteReader): void
  onReply(header: ReplyHeader, body: JuteReader): void
  onEvents(batch: readonly WatchEvent[]): void
  /** Reports that all received frames were dispatched, and that there were answers among them. */
  onRepliesHandled(): void
  onError(error: unknown): void
}

interface InboundMessage {
  /** Header; the first frame has none. */
  readonly header: ReplyHeader | undefined
  readonly body: JuteReader
}

/** The header of every watch event. */
const EVENT_HEADER: ReplyHeader = { xid: XID.watchEvent, zxid: -1n, code: 0 }

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

  /** Whether anything was received. */
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
          // A handler may have closed the client, which settles the requests in flight.
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
    const header = this.#begun ? readHeader(frame, body) : undefined
    this.#begun = true
    return { header, body }
  }

  /** Continues with `held` after the continuations of all answers so far have run. */
  #yield(held: InboundMessage): void {
    this.#yielding = true
    // Microtasks run until none are left; ticks that were scheduled in one run after that.
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

/** Reads the header of a frame. Most frames are watch events, whose headers say nothing else: no object is made for them. */
function readHeader(frame: Buffer, body: JuteReader): ReplyHeader {
  const isEvent = frame.length >= REPLY_HEADER_BYTES && frame.readInt32BE(0) === XID.watchEvent
  if (!isEvent) return readReplyHeader(body)
  body.skip(REPLY_HEADER_BYTES)
  return EVENT_HEADER
}
