/**
 * What a dashboard follows of a board while somebody looks at it: the view of the board, its throughput, and the topics of the stream of changes.
 * It is opened by the first look and closed a minute after the last, so that a dashboard that nobody looks at costs the board nothing.
 */
import type { JobBoard, JobEvent } from '../../board/index.ts'
import type { Logger } from '../../core/log.ts'
import { Throughput } from './throughput.ts'

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

export class BoardFeed {
  readonly throughput = new Throughput()
  readonly #options: BoardFeedOptions
  #opening: Promise<void> | undefined
  #isOpen = false
  #held: (() => void)[] = []
  #watches: AsyncDisposable[] = []
  #streams = 0
  #idle: NodeJS.Timeout | undefined
  #comparing: NodeJS.Timeout | undefined
  #compared = ''
  #countedUntil = 0

  constructor(options: BoardFeedOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Follows the board for some time from now on. @throws NotConnected, AccessDenied */
  async look(): Promise<void> {
    this.#opening ??= this.#open()
    this.#rest()
    await this.#opening
  }

  /** Follows the board until the result is disposed. */
  async stream(): Promise<Disposable> {
    this.#streams += 1
    try {
      await this.look()
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
    clearInterval(this.#comparing)
    const [held, watches] = [this.#held, this.#watches]
    this.#held = []
    this.#watches = []
    this.#opening = undefined
    this.#isOpen = false
    for (const end of held) end()
    await Promise.allSettled(watches.map((watch) => watch[Symbol.asyncDispose]()))
  }

  #rest(): void {
    clearTimeout(this.#idle)
    if (this.#streams > 0) return
    this.#idle = setTimeout(() => void this.close(), this.#options.idleMs ?? IDLE_MS).unref()
  }

  async #open(): Promise<void> {
    const { board, onTopics } = this.#options
    try {
      this.#listen()
      const view = await board.view()
      this.#held.push(() => view[Symbol.dispose]())
      await this.#fillThroughput()
      await this.#watchRecords()
      this.#comparing = setInterval(() => void this.#compare(), COMPARE_PERIOD_MS).unref()
      this.#isOpen = true
      onTopics(['board'])
    } catch (error) {
      await this.close()
      throw error
    }
  }

  #listen(): void {
    const { board, onTopics, onChange } = this.#options
    const emit = (topics: readonly string[], { job }: JobEvent) => {
      onChange()
      onTopics([...topics, ...(job.batch === undefined ? [] : ['batches']), job.uuid])
    }
    const { throughput } = this
    this.#held.push(
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
    )
  }

  /** Reads what has happened before the board was followed, since it was followed last. */
  async #fillThroughput(): Promise<void> {
    const { board } = this.#options
    const until = Date.now()
    const from = Math.max(until - HOUR_MS, this.#countedUntil)
    if (board.capabilities.history) this.throughput.fill(await board.history({ limit: MAX_HISTORY }), { from, until })
  }

  async #watchRecords(): Promise<void> {
    const { board, onTopics, onChange } = this.#options
    if (!board.capabilities.records) return
    const watch = async ([kind, topic]: readonly [string, string]) => {
      const changed = () => {
        onChange()
        onTopics([topic])
      }
      this.#watches.push(await board.records.watch(kind, changed))
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
