/**
 * The streams of changes (Server-Sent Events) of one board. A message names what has changed, at most four times a second; a reader that is too
 * slow gets fewer messages with more in each. The id of a message is a position: a reader that was away for a moment gets what it has missed, and
 * one that was away for longer the event `reset`. The event `alive` comes every 15 s: a reader that does not receive it opens another stream.
 */
import { randomBytes } from 'node:crypto'
import { monotonic } from '../core/time.ts'
import { Refusal } from './problem.ts'
import type { WireChange } from './wire/live.ts'

const PERIOD_MS = 250
const ALIVE_PERIOD_MS = 15_000
/** The age at which a stream is ended, so that the rights of its reader are checked again: browsers connect anew. */
const MAX_AGE_MS = 3_600_000
const MAX_STREAMS = 1_000
/** The streams of one address: a browser has one; behind a proxy all have the address of that. */
const MAX_PER_ADDRESS = 200
/** The changes that are kept for readers that come back. */
const MAX_KEPT = 2_000
const MAX_PENDING = 1_000
/** The bytes that wait in a stream for its reader. */
const HIGH_WATER_BYTES = 16_384

/** Counts the streams of all boards of a dashboard. */
export class StreamCounter {
  readonly #byAddress = new Map<string, number>()
  #streams = 0

  /** @throws Refusal where there are too many */
  add(address = 'unknown'): Disposable {
    const ofAddress = this.#byAddress.get(address) ?? 0
    if (this.#streams >= MAX_STREAMS || (address !== 'unknown' && ofAddress >= MAX_PER_ADDRESS))
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
  readonly #epoch = randomBytes(6).toString('hex')
  readonly #streams = new Set<ChangeStream>()
  #kept: { readonly position: number; readonly topics: readonly string[] }[] = []
  #position = 0

  constructor(board: string) {
    this.#board = board
  }

  /** Reports what has changed to all streams. */
  publish(topics: readonly string[]): void {
    this.#position += 1
    this.#kept.push({ position: this.#position, topics })
    if (this.#kept.length > 2 * MAX_KEPT) this.#kept = this.#kept.slice(-MAX_KEPT)
    for (const stream of this.#streams) stream.add(topics)
  }

  /** Answers with a new stream. */
  open({ jobs, lastEventId, signal, held }: StreamRequest): Response {
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
        // For nginx, which would keep messages back.
        'X-Accel-Buffering': 'no',
      },
    })
  }

  close(): void {
    for (const stream of this.#streams) stream.end()
  }

  /** Returns the topics since a message; undefined where they are not kept any more. */
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

/** Topics that every reader gets; others are uuids of jobs. */
const GENERAL: ReadonlySet<string> = new Set(['board', 'jobs', 'trash', 'limits', 'schedules', 'conductors', 'batches'])

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
    return new ReadableStream<Uint8Array>(
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
  }

  add(topics: readonly string[]): void {
    for (const topic of topics) if (this.#isWanted(topic) && this.#pending.size < MAX_PENDING) this.#pending.add(topic)
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
    return GENERAL.has(topic) || this.#options.jobs.has(topic)
  }

  #schedule(): void {
    if (this.#timer || !this.#controller) return
    const wait = Math.max(0, this.#sentAt + PERIOD_MS - monotonic())
    this.#timer = setTimeout(() => this.#flush(), wait).unref()
  }

  #flush(): void {
    this.#timer = undefined
    // A slow reader: what changes meanwhile is sent with the next message.
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
