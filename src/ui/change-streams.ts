/**
 * The streams of changes of one board, as Server-Sent Events. A message names the topics that have changed, at most four times a second; a slow
 * reader gets fewer messages with more topics in each. The id of a message is a position: a reader that reconnects gets the topics that it has
 * missed, or the event `reset` if they are not known any more. The event `alive` is sent every 15 s, so that a reader notices a lost connection.
 */
import { randomBytes } from 'node:crypto'
import { monotonic, startTimer } from '../core/time.ts'
import { Refusal } from './problem.ts'
import type { WireChange } from './wire/live.ts'

const PERIOD_MS = 250
const ALIVE_PERIOD_MS = 15_000
/** The age at which a stream is ended. Browsers reconnect, and the rights of the reader are checked again. */
const MAX_AGE_MS = 3_600_000
const MAX_STREAMS = 1_000
/** The most streams of one address. A browser has one stream for each board, but all browsers behind a proxy have its address. */
const MAX_PER_ADDRESS = 200
/** The least number of changes that are kept for readers that reconnect. */
const MAX_KEPT = 2_000
/** The most bytes that wait in a stream for its reader. */
const HIGH_WATER_BYTES = 16_384

/** Counts the streams of all boards of a dashboard. */
export class StreamCounter {
  readonly #byAddress = new Map<string, number>()
  #streams = 0

  /**
   * Counts a stream until the result is disposed.
   *
   * @param address the client: its address, or the person where the address is not known. @throws Refusal if too many streams are open
   */
  add(address: string): Disposable {
    const ofAddress = this.#byAddress.get(address) ?? 0
    if (this.#streams >= MAX_STREAMS || ofAddress >= MAX_PER_ADDRESS)
      throw new Refusal('UNAVAILABLE', 'too many streams are open; close other pages of the dashboard', {
        'Retry-After': '30',
      })
    this.#streams += 1
    this.#byAddress.set(address, ofAddress + 1)
    let isOver = false
    return {
      [Symbol.dispose]: () => {
        if (isOver) return
        isOver = true
        this.#streams -= 1
        const left = (this.#byAddress.get(address) ?? 1) - 1
        if (left > 0) this.#byAddress.set(address, left)
        else this.#byAddress.delete(address)
      },
    }
  }

  get streams(): number {
    return this.#streams
  }
}

export interface StreamRequest {
  /** The uuids of the jobs whose changes are named. */
  readonly jobs: ReadonlySet<string>
  readonly lastEventId: string | null
  readonly signal: AbortSignal
  /** Disposed when the stream ends. */
  readonly held: readonly Disposable[]
}

export class ChangeStreams {
  readonly #board: string
  /** The prefix of the positions; a new one after each period in which changes were not reported. */
  #epoch = newEpoch()
  readonly #streams = new Set<ChangeStream>()
  #kept: { readonly position: number; readonly topics: readonly string[] }[] = []
  #position = 0
  #isClosed = false

  constructor(board: string) {
    this.#board = board
  }

  /** Notes that changes are not reported from now on: readers that reconnect get `reset`. */
  forget(): void {
    this.#epoch = newEpoch()
    this.#kept = []
  }

  /** Sends the topics of a change to all streams. */
  publish(topics: readonly string[]): void {
    this.#position += 1
    this.#kept.push({ position: this.#position, topics })
    if (this.#kept.length > 2 * MAX_KEPT) this.#kept = this.#kept.slice(-MAX_KEPT)
    for (const stream of this.#streams) stream.add(topics)
  }

  /** Answers with a new stream. @throws Refusal after {@link close} */
  open({ jobs, lastEventId, signal, held }: StreamRequest): Response {
    if (this.#isClosed) throw new Refusal('UNAVAILABLE', 'the dashboard is closed')
    const missed = lastEventId === null ? [] : this.#since(lastEventId)
    const stream: ChangeStream = new ChangeStream({
      ...{ board: this.#board, jobs, id: () => `${this.#epoch}-${this.#position}` },
      onEnd: () => {
        this.#streams.delete(stream)
        for (const each of held) each[Symbol.dispose]()
      },
    })
    this.#streams.add(stream)
    const body = stream.start({ missed, signal })
    return new Response(body, {
      headers: {
        'Content-Type': 'text/event-stream; charset=utf-8',
        'Cache-Control': 'no-cache, no-transform',
        // Tells nginx not to buffer the messages.
        'X-Accel-Buffering': 'no',
      },
    })
  }

  /** Ends all streams, and refuses new ones, because a request may still wait for the board. */
  close(): void {
    this.#isClosed = true
    for (const stream of this.#streams) stream.end()
  }

  /** Returns the topics since a message; undefined if they are not known any more. */
  #since(id: string): readonly string[] | undefined {
    const [, epoch, digits] = /^([0-9a-f]{12})-(\d{1,15})$/.exec(id) ?? []
    const position = Number(digits)
    if (epoch !== this.#epoch || position > this.#position) return undefined
    const oldest = this.#kept[0]?.position ?? this.#position + 1
    if (position + 1 < oldest) return undefined
    return this.#kept.filter((change) => change.position > position).flatMap(({ topics }) => topics)
  }
}

interface ChangeStreamOptions {
  readonly board: string
  readonly jobs: ReadonlySet<string>
  readonly id: () => string
  readonly onEnd: () => void
}

/** The topics that every reader gets. All other topics are uuids of jobs. */
const BOARD_TOPICS: ReadonlySet<string> = new Set([
  'board',
  'jobs',
  'trash',
  'limits',
  'flows',
  'schedules',
  'conductors',
  'batches',
])

class ChangeStream {
  readonly #options: ChangeStreamOptions
  readonly #encoder = new TextEncoder()
  readonly #pending = new Set<string>()
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #timer: NodeJS.Timeout | undefined
  #alive: NodeJS.Timeout | undefined
  #age: NodeJS.Timeout | undefined
  #sentAt = Number.NEGATIVE_INFINITY
  #offAbort: () => void = () => undefined

  constructor(options: ChangeStreamOptions) {
    this.#options = options
  }

  start({
    missed,
    signal,
  }: {
    readonly missed: readonly string[] | undefined
    readonly signal: AbortSignal
  }): ReadableStream<Uint8Array> {
    const end = () => this.end()
    signal.addEventListener('abort', end, { once: true })
    this.#offAbort = () => signal.removeEventListener('abort', end)
    this.#alive = setInterval(() => this.#write('event: alive\ndata: {}\n\n'), ALIVE_PERIOD_MS).unref()
    this.#age = setTimeout(end, MAX_AGE_MS).unref()
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
          this.#write('retry: 2000\n\n')
          if (missed) this.#send(missed.filter((topic) => this.#isWanted(topic)))
          else this.#write(`event: reset\nid: ${this.#options.id()}\ndata: ${JSON.stringify(this.#message([]))}\n\n`)
        },
        pull: () => {
          if (this.#pending.size > 0) this.#schedule()
        },
        cancel: () => this.end(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: HIGH_WATER_BYTES }),
    )
    // If the client has disconnected meanwhile, the signal emits no event any more.
    if (signal.aborted) end()
    return body
  }

  add(topics: readonly string[]): void {
    // The set stays small: the topics of the board, and the jobs that the reader has named.
    for (const topic of topics) if (this.#isWanted(topic)) this.#pending.add(topic)
    if (this.#pending.size > 0) this.#schedule()
  }

  end(): void {
    if (!this.#controller) return
    clearTimeout(this.#timer)
    clearTimeout(this.#age)
    clearInterval(this.#alive)
    this.#offAbort()
    const controller = this.#controller
    this.#controller = undefined
    try {
      controller.close()
    } catch {
      // The reader has cancelled it.
    }
    this.#options.onEnd()
  }

  #isWanted(topic: string): boolean {
    return BOARD_TOPICS.has(topic) || this.#options.jobs.has(topic)
  }

  #schedule(): void {
    if (this.#timer || !this.#controller) return
    const wait = Math.max(0, this.#sentAt + PERIOD_MS - monotonic())
    this.#timer = startTimer(() => this.#flush(), wait).unref()
  }

  #flush(): void {
    this.#timer = undefined
    // The reader is slow: pending topics are sent after it has read (`pull`).
    if (!this.#controller || (this.#controller.desiredSize ?? 0) <= 0) return
    const topics = [...this.#pending]
    this.#pending.clear()
    this.#send(topics)
  }

  #send(topics: readonly string[]): void {
    this.#sentAt = monotonic()
    this.#write(`id: ${this.#options.id()}\ndata: ${JSON.stringify(this.#message([...new Set(topics)]))}\n\n`)
  }

  #message(topics: string[]): WireChange {
    return { board: this.#options.board, topics, at: new Date().toISOString() }
  }

  #write(text: string): void {
    this.#controller?.enqueue(this.#encoder.encode(text))
  }
}

function newEpoch(): string {
  return randomBytes(6).toString('hex')
}
