/**
 * What a dashboard follows of a board while somebody looks at it: the view of the board, its throughput, and the topics of the stream of changes.
 * It is opened by the first look and closed a minute after the last, so that a dashboard that nobody looks at costs the board nothing.
 */
import type { JobBoard, JobEvent } from '../../board/index.ts'
import { isSettledWithin } from '../../core/async/abort.ts'
import type { Logger } from '../../core/log.ts'
import { Throughput } from './throughput.ts'

/** The milliseconds for which a look waits until the board is followed, which takes seconds where many jobs have to be read. */
const LOOK_MS = 50
/** The time after the last look until the board is not followed any more. */
export const IDLE_MS = 60_000
/** The period in which what has no events is compared: conductors, and whether the board is paused. */
const COMPARE_PERIOD_MS = 5_000
/** The records whose changes are topics. */
const RECORD_TOPICS: Readonly<Record<string, string>> = {
  limit: 'limits',
  'limit-hold': 'limits',
  schedule: 'schedules',
}
const MAX_HISTORY = 10_000
const HOUR_MS = 3_600_000

export interface BoardFeedOptions {
  readonly board: JobBoard
  readonly log: Logger
  readonly onTopics: (topics: readonly string[]) => void
  /** Called when an event may have changed what was computed before. */
  readonly onChange: () => void
  readonly idleMs?: number
}

/** What is to be ended when the board is not followed any more. What is added after that is ended at once: the board was being opened. */
class Followed {
  #ends: (() => unknown)[] = []
  #isOver = false

  add(end: () => unknown): void {
    if (this.#isOver) void Promise.resolve(end()).catch(() => undefined)
    else this.#ends.push(end)
  }

  async end(): Promise<void> {
    this.#isOver = true
    const ends = this.#ends
    this.#ends = []
    // Without a connection a watch cannot be ended, and has ended.
    await Promise.allSettled(ends.map(async (end) => end()))
  }
}

export class BoardFeed {
  readonly throughput = new Throughput()
  readonly #options: BoardFeedOptions
  #opening: { readonly done: Promise<void>; readonly followed: Followed } | undefined
  #streams = 0
  #idle: NodeJS.Timeout | undefined
  #compared = ''
  #countedUntil = 0

  constructor(options: BoardFeedOptions) {
    this.#options = options
  }

  /** Whether the board is followed, or about to be. */
  get isOpen(): boolean {
    return this.#opening !== undefined
  }

  /** Follows the board for some time from now on. Resolves when it does, or after 50 ms. @throws NotConnected, AccessDenied */
  async look(): Promise<void> {
    await isSettledWithin(LOOK_MS, this.#begin())
  }

  /** Follows the board until the result is disposed. Resolves when it is followed. @throws NotConnected, AccessDenied */
  async stream(): Promise<Disposable> {
    this.#streams += 1
    try {
      await this.#begin()
    } catch (error) {
      this.#streams -= 1
      throw error
    }
    let isOver = false
    return {
      [Symbol.dispose]: () => {
        if (isOver) return
        isOver = true
        this.#streams -= 1
        this.#rest()
      },
    }
  }

  /** Ends what is followed. */
  async close(): Promise<void> {
    clearTimeout(this.#idle)
    const { followed } = this.#opening ?? {}
    this.#opening = undefined
    await followed?.end()
  }

  #begin(): Promise<void> {
    if (!this.#opening) {
      const followed = new Followed()
      this.#opening = { done: this.#open(followed), followed }
    }
    this.#rest()
    return this.#opening.done
  }

  #rest(): void {
    clearTimeout(this.#idle)
    if (this.#streams > 0) return
    this.#idle = setTimeout(() => void this.close(), this.#options.idleMs ?? IDLE_MS).unref()
  }

  async #open(followed: Followed): Promise<void> {
    const { board, onTopics, onChange } = this.#options
    try {
      this.#listen(followed)
      const view = await board.view()
      followed.add(() => view[Symbol.dispose]())
      await this.#fillThroughput()
      await this.#watchRecords(followed)
      const comparing = setInterval(() => void this.#compare(), COMPARE_PERIOD_MS).unref()
      followed.add(() => clearInterval(comparing))
    } catch (error) {
      if (this.#opening?.followed === followed) this.#opening = undefined
      await followed.end()
      throw error
    }
    // Answers that were given meanwhile have only a part of the jobs.
    onChange()
    onTopics(['board', 'jobs'])
  }

  #listen(followed: Followed): void {
    const { board, onTopics, onChange } = this.#options
    const emit = (topics: readonly string[], { job }: JobEvent) => {
      onChange()
      onTopics([...topics, ...(job.batch === undefined ? [] : ['batches']), job.uuid])
    }
    const { throughput } = this
    const ends = [
      board.on('posted', (event) => {
        throughput.count('posted', Date.now())
        emit(['jobs'], event)
      }),
      board.on('claimed', (event) => emit(['jobs'], event)),
      board.on('abandoned', (event) => {
        if (event.job.attempts.at(-1)?.ended === 'failed') throughput.count('failed', Date.now())
        emit(['jobs'], event)
      }),
      board.on('consumed', (event) => {
        throughput.count('done', Date.now())
        emit(['jobs'], event)
      }),
      board.on('trashed', (event) => {
        throughput.count('trashed', Date.now())
        if (event.job.runs > 0) throughput.count('failed', Date.now())
        emit(['jobs', 'trash'], event)
      }),
      board.on('state', () => {
        onChange()
        onTopics(['board'])
      }),
    ]
    for (const end of ends) followed.add(end)
  }

  /** Reads what has happened before the board was followed, since it was followed last. */
  async #fillThroughput(): Promise<void> {
    const { board } = this.#options
    const until = Date.now()
    const from = Math.max(until - HOUR_MS, this.#countedUntil)
    if (board.capabilities.history) this.throughput.fill(await board.history({ limit: MAX_HISTORY }), { from, until })
  }

  async #watchRecords(followed: Followed): Promise<void> {
    const { board, onTopics, onChange } = this.#options
    if (!board.capabilities.records) return
    const watch = async ([kind, topic]: readonly [string, string]) => {
      const changed = () => {
        onChange()
        onTopics([topic])
      }
      const records = await board.records.watch(kind, changed)
      followed.add(() => records[Symbol.asyncDispose]())
    }
    await Promise.all(Object.entries(RECORD_TOPICS).map(watch))
  }

  /** Reports what has changed without an event. */
  async #compare(): Promise<void> {
    const { board, log, onTopics, onChange } = this.#options
    this.#countedUntil = Date.now()
    if (this.#streams === 0 || !board.connected) return
    try {
      const conductors = (await board.entities('conductor')).map(({ name, metadata }) => [name, metadata])
      const [before, seen] = [this.#compared, JSON.stringify([conductors, board.paused], toText)]
      this.#compared = seen
      if (before === '' || before === seen) return
      onChange()
      onTopics(['board', 'conductors'])
    } catch (error) {
      log.debug({ err: error }, 'the dashboard could not read the conductors')
    }
  }
}

function toText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
