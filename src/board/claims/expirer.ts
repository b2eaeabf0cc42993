/**
 * Moves jobs that were not started in time to the trash (`expiresAfter`), while this process claims jobs.
 *
 * | where the job is | found by | when |
 * |---|---|---|
 * | in the view | the timer of the view, which is set for the next job that expires | at its time, and up to half a second later |
 * | chosen for a claim | the check before the claim (`candidates.ts`) | at its time |
 * | outside the window of a long board | the sweep (`expiry-sweep.ts`) | when the sweep comes by |
 *
 * Each job is trashed in one transaction, at the revision at which it was read: if a claim is faster, nothing happens. The time is the
 * server's: it is read before anything is trashed, because the clock of this machine may be wrong.
 *
 * A job with `reservedFor` is kept as long as that owner lives: it claims the job itself, and may wait for long.
 */
import { RecurringError } from '../../core/async/recurring-error.ts'
import { asError, NotConnected, NotFound, OutcomeUnknown, Unclaimable } from '../../core/errors.ts'
import { startTimer, systemAlarmClock } from '../../core/time.ts'
import type { Backend, DiscardRequest, StoredJob } from '../contract/index.ts'
import type { QueuePlace } from '../model/entry.ts'
import { expiryReason, isOverdue, listReservedFor } from '../model/expiry.ts'
import type { BoardRecords } from '../records/board-records.ts'
import type { LiveView } from '../view/live-view.ts'
import { ExpirySweep } from './expiry-sweep.ts'
import type { Incarnation } from './incarnation.ts'

/** The number of jobs that are trashed at once. */
const MAX_BATCH = 100
/** The longest random pause before jobs are trashed: otherwise all processes that claim would try it at the same instant. */
const MAX_SPREAD_MS = 500
/** The time after which the clock is read again, and a job is looked at again that could not be trashed, or whose owner lives. */
const RETRY_MS = { clock: 10_000, beingClaimed: 1_000, reserved: 60_000, away: 5_000, refused: 60_000 } as const

export interface ExpirerOptions {
  readonly backend: Pick<Backend, 'clock' | 'jobs' | 'sections'>
  readonly view: Pick<LiveView, 'evaluate' | 'isOpen' | 'extent' | 'queue' | 'afterSearch' | 'applyOwnChange'>
  readonly records: Pick<BoardRecords, 'of'>
  readonly incarnation: Pick<Incarnation, 'listLiving'>
  /** Trashes an unclaimed job in one transaction. Rejects as `Backend.trash.discard`. */
  readonly discard: (job: StoredJob, request: Pick<DiscardRequest, 'cancelRequested' | 'reason'>) => Promise<void>
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

/**
 * The outcome of the trashing of a job. `lost`: it was claimed, changed or removed before. `away`: there is no connection, or the outcome is
 * not known.
 */
type Outcome = 'trashed' | 'lost' | 'away' | 'refused'

export class Expirer {
  readonly #options: ExpirerOptions
  /** Finds the jobs that the view does not contain. */
  readonly sweep: ExpirySweep
  #isStarted = false
  #isBusy = false
  #timer: NodeJS.Timeout | undefined
  #alarm: Disposable | undefined
  readonly #recurring = new RecurringError()

  constructor(options: ExpirerOptions) {
    this.#options = options
    this.sweep = new ExpirySweep({ ...options, expire: (jobs) => this.#expireOutside(jobs) })
  }

  /** Starts, once this board claims jobs: a board that only lists them changes nothing. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    void this.#readClock()
    this.noteExpired()
    this.sweep.start()
  }

  /** Reads the server's clock, by which the timer of the view is set. Never rejects. */
  async #readClock(): Promise<void> {
    const { backend, view, signal } = this.#options
    try {
      await backend.clock.read()
      view.afterSearch()
    } catch (error) {
      this.#report(error)
      if (!signal.aborted) setTimeout(() => void this.#readClock(), RETRY_MS.clock).unref()
    }
  }

  /** Notes that the time of jobs in the view has come. */
  noteExpired(): void {
    const { backend, signal } = this.#options
    if (!this.#isStarted || this.#isBusy || this.#timer || signal.aborted) return
    // Boards with a clock in this process have no other process that could try it, too.
    const pauseMs = backend.clock.alarms ? 0 : Math.random() * MAX_SPREAD_MS
    this.#timer = startTimer(() => void this.#expireShown(), pauseMs).unref()
  }

  /** Never rejects. After an error without a connection, the board is listed again, and so are its expired jobs. */
  async #expireShown(): Promise<void> {
    const { backend, view, signal } = this.#options
    this.#timer = undefined
    this.#isBusy = true
    try {
      await backend.clock.read()
      const { expiring } = view.queue
      for (let places = expiring.take(MAX_BATCH); places.length > 0; places = expiring.take(MAX_BATCH)) {
        if (signal.aborted) return
        await this.#expireBatch(places)
      }
    } catch (error) {
      this.#report(error)
    } finally {
      this.#isBusy = false
      view.afterSearch()
      this.#setOwnAlarm()
    }
  }

  /** Sets the alarm for jobs that were postponed, on a clock of the board's own: the timers of the view go by the clock of the process. */
  #setOwnAlarm(): void {
    const { backend, view, signal } = this.#options
    const { alarms } = backend.clock
    this.#alarm?.[Symbol.dispose]()
    const { next } = view.queue.expiring
    if (!alarms || alarms === systemAlarmClock || next === undefined || signal.aborted) return
    const ring = () => view.evaluate()
    this.#alarm = alarms.alarm(Math.max(0, next - alarms.now()), { kind: 'expiry', ring })
  }

  async #expireBatch(places: readonly QueuePlace[]): Promise<void> {
    const { backend, view, incarnation } = this.#options
    const { expiring } = view.queue
    const now = backend.clock.now()
    const current = places.filter((place) => place.entry.queuePlace === place && !place.entry.ended)
    const overdue: QueuePlace[] = []
    for (const place of current) {
      // The clock of this machine was ahead.
      if (!isOverdue(place.stored, now)) expiring.postpone(place)
      else if (place.entry.isReserved) expiring.postpone(place, now + RETRY_MS.beingClaimed)
      else overdue.push(place)
    }
    let living: ReadonlySet<string>
    try {
      living = await incarnation.listLiving(listReservedFor(overdue.map(({ stored }) => stored)))
    } catch (error) {
      for (const place of overdue) expiring.postpone(place, now + RETRY_MS.away)
      throw error
    }
    await Promise.all(
      overdue.map(async (place) => {
        const { entry, stored } = place
        if (living.has(stored.posting.reservedFor ?? '')) return expiring.postpone(place, now + RETRY_MS.reserved)
        const outcome = await this.#discard(stored, { cancelRequested: entry.cancelRequested })
        if (outcome === 'trashed') view.applyOwnChange(entry, 'trashed')
        else if (outcome !== 'lost') expiring.postpone(place, now + RETRY_MS[outcome])
      }),
    )
  }

  /** Trashes the expired ones among jobs outside the view. */
  async #expireOutside(jobs: readonly (StoredJob & { readonly cancelled: boolean })[]): Promise<void> {
    const { backend, incarnation } = this.#options
    await backend.clock.read()
    const overdue = jobs.filter((job) => isOverdue(job, backend.clock.now()))
    const living = await incarnation.listLiving(listReservedFor(overdue))
    const dead = overdue.filter(({ posting }) => !living.has(posting.reservedFor ?? ''))
    for (let from = 0; from < dead.length; from += MAX_BATCH)
      await Promise.all(
        dead.slice(from, from + MAX_BATCH).map((job) => this.#discard(job, { cancelRequested: job.cancelled })),
      )
  }

  async #discard(job: StoredJob, { cancelRequested }: Pick<DiscardRequest, 'cancelRequested'>): Promise<Outcome> {
    try {
      await this.#options.discard(job, { cancelRequested, reason: expiryReason(job.posting) })
      return 'trashed'
    } catch (error) {
      if (error instanceof Unclaimable || error instanceof NotFound) return 'lost'
      this.#report(error)
      return error instanceof NotConnected || error instanceof OutcomeUnknown ? 'away' : 'refused'
    }
  }

  /** Reports an error once until another one occurs. Without a connection, the board reports that itself. */
  #report(thrown: unknown): void {
    const error = asError(thrown)
    if (this.#options.signal.aborted || error instanceof NotConnected) return
    if (this.#recurring.isNew(error)) this.#options.onError(error)
  }
}
