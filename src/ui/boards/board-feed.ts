/**
 * Follows a board while the dashboard is in use: keeps a view of it open, counts its throughput, and reports what has changed as topics for the
 * streams. The feed is opened by the first request and closed a minute after the last one, so that an unused dashboard costs the board nothing.
 */

import type { JobBoard, JobEvent } from '../../board/index.ts'
import { boardInternals, type ListedJob, MAX_HISTORY } from '../../board/internal.ts'
import { isSettledWithin } from '../../core/async/abort.ts'
import type { Logger } from '../../core/log.ts'
import { startTimer } from '../../core/time.ts'
import { FailedRuns } from './failed-runs.ts'
import { type Counter, Throughput } from './throughput.ts'

/** How long a request waits for the feed to open: on a board with many jobs, opening it takes seconds. */
const OPEN_WAIT_MS = 50
/** The time from the last request until the feed is closed. */
export const IDLE_MS = 60_000
/** How often the conductors, and whether the board is paused, are read: the board emits no events for them. */
const COMPARE_PERIOD_MS = 5_000
/** The topic of each kind of record that is watched. */
const RECORD_TOPICS: Readonly<Record<string, string>> = {
  limit: 'limits',
  'limit-hold': 'limits',
  'flow-setting': 'flows',
  schedule: 'schedules',
}
/** The limits of one read of the open jobs: the first 20,000 in claim order, for 200 ms. */
const SCAN = { limit: 1, most: 20_000, timeMs: 200 } as const
const HOUR_MS = 3_600_000

export interface BoardFeedOptions {
  readonly board: JobBoard
  readonly log: Logger
  readonly onTopics: (topics: readonly string[]) => void
  /** Called when cached answers may be out of date. */
  readonly onChange: () => void
  /** Called when the feed is closed: from now on, changes are not reported. */
  readonly onClose?: () => void
  readonly idleMs?: number
}

interface CountedEvent {
  readonly counter: Counter
  readonly at: number
}

/** The subscriptions of an open feed. A subscription that is added after `end` is ended at once: the feed was closed while it was being opened. */
class Subscriptions {
  #ends: (() => unknown)[] = []
  #isEnded = false

  add(end: () => unknown): void {
    if (this.#isEnded) void Promise.resolve(end()).catch(() => undefined)
    else this.#ends.push(end)
  }

  async end(): Promise<void> {
    this.#isEnded = true
    const ends = this.#ends
    this.#ends = []
    // Without a connection a watch cannot be ended here; the server ends it with the connection.
    await Promise.allSettled(ends.map(async (end) => end()))
  }
}

export class BoardFeed {
  readonly throughput = new Throughput()
  readonly #options: BoardFeedOptions
  #opening: { readonly done: Promise<void>; readonly subscriptions: Subscriptions } | undefined
  #holds = 0
  #closeTimer: NodeJS.Timeout | undefined
  /** The conductors and the pause when they were last read, as JSON. */
  #compared = ''
  /** Whether events are counted: not before the time until then is filled in. */
  #isCounting = false
  /** The events from while the history is read. */
  #early: CountedEvent[] | undefined
  /** The time until which everything is in the throughput. */
  #countedUntil = 0

  constructor(options: BoardFeedOptions) {
    this.#options = options
  }

  /** Whether the feed is open or opening. */
  get isOpen(): boolean {
    return this.#opening !== undefined
  }

  /** Opens the feed if it is closed, and keeps it open for another minute. Resolves when it is open, or after 50 ms. @throws NotConnected, AccessDenied */
  async touch(): Promise<void> {
    await isSettledWithin(OPEN_WAIT_MS, this.#open())
  }

  /** Keeps the feed open until the result is disposed. Resolves when it is open. @throws NotConnected, AccessDenied */
  async hold(): Promise<Disposable> {
    this.#holds += 1
    try {
      await this.#open()
    } catch (error) {
      this.#holds -= 1
      // It may have been opened again meanwhile, without a timer because of this hold.
      if (this.isOpen) this.#scheduleClose()
      throw error
    }
    let isDisposed = false
    return {
      [Symbol.dispose]: () => {
        if (isDisposed) return
        isDisposed = true
        this.#holds -= 1
        this.#scheduleClose()
      },
    }
  }

  /** Ends all subscriptions. The next request opens the feed again. */
  async close(): Promise<void> {
    clearTimeout(this.#closeTimer)
    const { subscriptions } = this.#opening ?? {}
    if (!subscriptions) return
    this.#opening = undefined
    this.#stopCounting()
    this.#options.onClose?.()
    await subscriptions.end()
  }

  #open(): Promise<void> {
    if (!this.#opening) {
      const subscriptions = new Subscriptions()
      this.#opening = { done: this.#subscribe(subscriptions), subscriptions }
    }
    this.#scheduleClose()
    return this.#opening.done
  }

  #scheduleClose(): void {
    clearTimeout(this.#closeTimer)
    if (this.#holds > 0) return
    this.#closeTimer = startTimer(() => void this.close(), this.#options.idleMs ?? IDLE_MS).unref()
  }

  async #subscribe(subscriptions: Subscriptions): Promise<void> {
    const { board, onTopics, onChange } = this.#options
    try {
      const failedRuns = this.#listen(subscriptions)
      const view = await board.view()
      subscriptions.add(() => view[Symbol.dispose]())
      await this.#startCounting(subscriptions, failedRuns)
      await this.#watchRecords(subscriptions)
      const comparing = setInterval(() => void this.#compare(), COMPARE_PERIOD_MS).unref()
      subscriptions.add(() => clearInterval(comparing))
    } catch (error) {
      if (this.#opening?.subscriptions === subscriptions) {
        this.#opening = undefined
        this.#stopCounting()
      }
      await subscriptions.end()
      throw error
    }
    // Answers that were computed while the board was being read contain only a part of the jobs.
    onChange()
    onTopics(['board', 'jobs'])
  }

  /** Counts and reports events. Returns the counter of failed runs; the caller passes it the running jobs. */
  #listen(subscriptions: Subscriptions): FailedRuns {
    const { board, onTopics, onChange } = this.#options
    const count = (counter: Counter) => {
      const at = Date.now()
      if (this.#isCounting) this.throughput.count(counter, at)
      else this.#early?.push({ counter, at })
    }
    const failedRuns = new FailedRuns(() => count('failed'))
    const emit = (topics: readonly string[], { job }: JobEvent) => {
      onChange()
      onTopics([...topics, ...(job.batch === undefined ? [] : ['batches']), job.uuid])
    }
    const ends = [
      board.on('posted', (event) => {
        count('posted')
        emit(['jobs'], event)
      }),
      () => failedRuns.close(),
      board.on('claimed', (event) => {
        failedRuns.onClaimed(event.job)
        emit(['jobs'], event)
      }),
      board.on('abandoned', (event) => {
        failedRuns.onReleased(event.job)
        emit(['jobs'], event)
      }),
      board.on('consumed', (event) => {
        count('done')
        failedRuns.onDone(event.job)
        emit(['jobs'], event)
      }),
      board.on('trashed', (event) => {
        count('trashed')
        failedRuns.onTrashed(event.job)
        emit(['jobs', 'trash'], event)
      }),
      board.on('state', () => {
        onChange()
        onTopics(['board'])
      }),
    ]
    for (const end of ends) subscriptions.add(end)
    return failedRuns
  }

  /** Starts to count events, and fills in the time since the last count: posts of open jobs from the board, the rest from the history. */
  async #startCounting(subscriptions: Subscriptions, failedRuns: FailedRuns): Promise<void> {
    const { board } = this.#options
    // The feed may have been closed, and even opened again, while the view was being opened: then this must not replace what the next opening keeps.
    if (this.#opening?.subscriptions !== subscriptions) return
    const until = Date.now()
    const from = Math.max(until - HOUR_MS, this.#countedUntil)
    const early: CountedEvent[] = []
    this.#early = early
    const posts = new Map<string, number>()
    const accept = ({ job, claimed }: ListedJob) => {
      const { uuid, postedAt } = job
      if (postedAt) posts.set(uuid, postedAt.getTime())
      if (claimed) failedRuns.onClaimed(job)
      // The page has no jobs: it is read only to look at them.
      return false
    }
    await boardInternals(board).jobPage({ ...SCAN, accept })
    const history = await board.history({ limit: MAX_HISTORY })
    // It was closed meanwhile: what is not filled in now is filled in by the next opening.
    if (this.#opening?.subscriptions !== subscriptions) return
    // A job that has ended between the two reads is in both.
    for (const { uuid } of history) posts.delete(uuid)
    for (const at of posts.values()) if (at >= from && at < until) this.throughput.count('posted', at)
    this.throughput.fill(history, { from, until })
    for (const { counter, at } of early) this.throughput.count(counter, at)
    this.#early = undefined
    this.#isCounting = true
  }

  /** Stops counting, and notes the time, so that the next opening counts nothing twice. */
  #stopCounting(): void {
    this.#early = undefined
    if (!this.#isCounting) return
    this.#isCounting = false
    this.#countedUntil = Date.now()
  }

  async #watchRecords(subscriptions: Subscriptions): Promise<void> {
    const { board, onTopics, onChange } = this.#options
    const watch = async ([kind, topic]: readonly [string, string]) => {
      const changed = () => {
        onChange()
        onTopics([topic])
      }
      const records = await boardInternals(board).records.watch(kind, changed)
      subscriptions.add(() => records[Symbol.asyncDispose]())
    }
    await Promise.all(Object.entries(RECORD_TOPICS).map(watch))
  }

  /** Reads the conductors and whether the board is paused, and emits topics if either has changed. */
  async #compare(): Promise<void> {
    const { board, log, onTopics, onChange } = this.#options
    if (this.#holds === 0 || !board.connected) return
    try {
      const conductors = (await board.entities('conductor')).map(({ name, metadata }) => [name, metadata])
      const [before, now] = [this.#compared, JSON.stringify([conductors, board.paused], toText)]
      this.#compared = now
      if (before === '' || before === now) return
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
