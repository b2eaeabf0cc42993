/**
 * Fires the schedules of a board: keeps the records in memory, arms one alarm for the earliest time, and fires what is due.
 *
 * Every conductor has a scheduler, and none is the leader. So that not all fire at once, each waits a little longer than the one before
 * it, in an order that differs from schedule to schedule (rendezvous hashing of the conductors' names); conductors that see the new record
 * meanwhile do nothing. The transaction alone makes each time fire once: the order only saves refused transactions.
 */
import { setImmediate as setImmediatePromise } from 'node:timers/promises'
import { Turns } from '../../core/async/turns.ts'
import { asError, NotConnected } from '../../core/errors.ts'
import { type AlarmClock, compareNumbers } from '../../core/time.ts'
import { followsCompletion } from '../../schedule/internal.ts'
import type { Details } from '../model/posting/posting.ts'
import { SortedList } from '../queue/sorted.ts'
import type { RecordView } from '../records/record-view.ts'
import { type Fired, fire } from './firing.ts'
import { SCHEDULES, type ScheduleRecord } from './record.ts'
import { RuleCache } from './rule-cache.ts'
import type { ScheduleHost } from './schedule-host.ts'
import { toScheduledRun } from './scheduled-post.ts'
import type { Schedules } from './schedules.ts'

/** The time by which each conductor waits longer than the conductor before it in the order of a schedule. */
const TURN_MS = 50
const MAX_TURN_MS = 1_000
/** The age at which the names of the conductors are read again, when a schedule is due. */
const NAMES_PERIOD_MS = 30_000
/** The age at which the names are read again when another conductor has fired before its turn: they are wrong. */
const NEW_NAMES_MS = 2_000
/** The pause before a failed firing is tried again. */
const RETRY_MS = 1_000
/** The period in which an awaited job is looked up: the conductor that ran it notes its end at once, if it lives. */
const AWAITED_PERIOD_MS = 30_000
/** The longest time without a look at the clock, which the servers may have set. */
const MAX_ALARM_MS = 60_000
/** The number of schedules that are fired at once. */
const MAX_CONCURRENT_FIRINGS = 100

export interface SchedulerOptions {
  readonly host: ScheduleHost
  readonly schedules: Schedules
  /** The name of this conductor. */
  readonly name: string
  readonly onFired: (fired: Fired) => void
  readonly onError: (error: Error) => void
}

/** A job that has left the board. */
export interface EndedJob {
  readonly uuid: string
  readonly details: Details
  readonly failed: boolean
}

interface Planned {
  readonly id: string
  readonly at: number
  /** Whether this conductor has waited for its turn. */
  readonly isOurTurn: boolean
}

export class Scheduler implements AsyncDisposable {
  readonly #options: SchedulerOptions
  readonly #clock: AlarmClock
  readonly #rules = new RuleCache()
  readonly #turns = new Turns()
  readonly #planned = new SortedList<Planned>(
    (a, b) => compareNumbers(a.at, b.at) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0),
  )
  readonly #plans = new Map<string, Planned>()
  /** The schedules that are being fired. */
  readonly #firing = new Map<string, Promise<void>>()
  /** The ends of jobs that are being noted, the last of each schedule. */
  readonly #ending = new Map<string, Promise<void>>()
  /** The last error that was reported of each schedule: it is tried again every second, and reported once. */
  readonly #reported = new Map<string, string>()
  #view: RecordView<ScheduleRecord> | undefined
  #names: readonly string[] = []
  #namesReadAt = Number.NEGATIVE_INFINITY
  #alarm: { readonly at: number; readonly set: Disposable } | undefined
  /** The time of the start. What was due by then is late, and fired at once. */
  #startedAt = Number.NEGATIVE_INFINITY
  #isClosed = false
  #isFiringSoon = false

  constructor(options: SchedulerOptions) {
    this.#options = options
    this.#clock = options.host.clock
  }

  /**
   * Reads the schedules, and fires them from now on. Resolves when all times until now were fired, or have failed: a conductor that stops when
   * nothing is left to do must find their jobs. Times that become due meanwhile are not waited for, because there may always be some.
   *
   * @throws NotConnected, AccessDenied
   */
  async start(): Promise<void> {
    const { host } = this.#options
    await host.readClock()
    await this.#readNames()
    this.#view = await host.records.view(SCHEDULES, (id) => this.#plan(id))
    this.#startedAt = host.now()
    for (const id of this.#view.records.keys()) this.#plan(id)
    this.#fireDue()
    while (this.#isFiringLate()) {
      if (this.#firing.size > 0) await Promise.race(this.#firing.values())
      await setImmediatePromise()
    }
  }

  /** Returns whether a time until the start is being fired, or is next. */
  #isFiringLate(): boolean {
    if (this.#isClosed) return false
    const isLate = (at: number | undefined) => at !== undefined && at <= this.#startedAt
    if (isLate(this.#planned.first?.at)) return true
    for (const id of this.#firing.keys()) {
      const record = this.#view?.records.get(id)
      if (record && !('error' in record) && isLate(record.value.next?.at)) return true
    }
    return false
  }

  /** Ends the firing; resolves when no transaction is under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    this.#alarm?.set[Symbol.dispose]()
    await Promise.all([...this.#firing.values(), ...this.#ending.values()])
    await this.#view?.[Symbol.asyncDispose]()
  }

  /** Notes the end of a job, if the times of its schedule depend on it. */
  onJobEnded({ uuid, details, failed }: EndedJob): void {
    const id = toScheduledRun(details)?.id
    const record = id === undefined ? undefined : this.#view?.records.get(id)
    if (id === undefined || !record || 'error' in record) return
    const { spec, failuresInRow } = record.value
    const before = this.#ending.get(id)
    // A job that succeeds after another that did changes nothing, and costs no transaction.
    if (!followsCompletion(spec) && !failed && failuresInRow === 0 && !before) return
    const ending = (before ?? Promise.resolve())
      .then(() => this.#options.schedules.jobEnded(id, { uuid, failed }))
      // Without a connection the end of an awaited job is found later, by a look at the board; a failure stays uncounted.
      .catch((error: unknown) => {
        if (!(error instanceof NotConnected)) this.#options.onError(asError(error))
      })
      .finally(() => {
        if (this.#ending.get(id) === ending) this.#ending.delete(id)
      })
    this.#ending.set(id, ending)
  }

  // --- Planning ---------------------------------------------------------------------------------------------------

  /** Plans when the schedule is looked at next. @param notBefore a pause after an error */
  #plan(id: string, { notBefore = 0 }: { readonly notBefore?: number } = {}): void {
    const earlier = this.#plans.get(id)
    if (earlier) {
      this.#planned.delete(earlier)
      this.#plans.delete(id)
    }
    const record = this.#view?.records.get(id)
    if (!record) {
      this.#rules.delete(id)
      this.#reported.delete(id)
    }
    if (this.#isClosed || !record) return
    if ('error' in record) {
      this.#report(id, record.error)
      return
    }
    const { next, awaits, paused } = record.value
    const due = awaits === undefined ? next?.at : this.#options.host.now() + AWAITED_PERIOD_MS
    if (due === undefined || paused) return
    try {
      this.#add({ id, at: Math.max(due, notBefore), isOurTurn: false })
    } catch (error) {
      // One schedule must not keep the others from being planned.
      this.#report(id, asError(error))
    }
    this.#arm()
  }

  #add(planned: Planned): void {
    this.#planned.add(planned)
    this.#plans.set(planned.id, planned)
  }

  #arm(): void {
    const first = this.#planned.first
    if (this.#isClosed || !first || this.#firing.size >= MAX_CONCURRENT_FIRINGS) return
    if (this.#alarm && this.#alarm.at <= first.at) return
    this.#alarm?.set[Symbol.dispose]()
    this.#alarm = undefined
    const waitMs = Math.min(first.at - this.#options.host.now(), MAX_ALARM_MS)
    if (waitMs <= 0) {
      // Without an alarm: a clock that a test turns rings only when it is turned.
      this.#fireSoon()
      return
    }
    const ring = () => {
      this.#alarm = undefined
      this.#fireDue()
    }
    this.#alarm = { at: first.at, set: this.#clock.alarm(waitMs, { kind: 'schedule', ring }) }
  }

  #fireSoon(): void {
    if (this.#isFiringSoon) return
    this.#isFiringSoon = true
    setImmediate(() => {
      this.#isFiringSoon = false
      if (!this.#isClosed) this.#fireDue()
    })
  }

  #fireDue(): void {
    const now = this.#options.host.now()
    let first = this.#planned.first
    while (first && first.at <= now && this.#firing.size < MAX_CONCURRENT_FIRINGS) {
      this.#planned.delete(first)
      this.#plans.delete(first.id)
      const turnMs = first.isOurTurn || first.at <= this.#startedAt ? 0 : this.#turnMs(first.id)
      // The names are looked at when the schedule is due: by then they are newer, and few schedules are due at once.
      if (turnMs > 0) this.#add({ id: first.id, at: first.at + turnMs, isOurTurn: true })
      else this.#fireOne(first.id)
      first = this.#planned.first
    }
    this.#refreshNames(NAMES_PERIOD_MS)
    this.#arm()
  }

  // --- Firing -----------------------------------------------------------------------------------------------------

  #fireOne(id: string): void {
    if (this.#firing.has(id)) return
    const revision = this.#view?.records.get(id)?.revision
    const firing = this.#fire(id)
      .then(
        (isDone) => {
          if (!isDone) this.#readAgain(id)
        },
        (error: unknown) => {
          // Without a connection a gap follows, and everything is read again.
          if (!(error instanceof NotConnected)) this.#report(id, asError(error))
          this.#readAgain(id)
        },
      )
      .finally(() => {
        this.#firing.delete(id)
        // The new record came, and was due, before this firing had ended.
        if (!this.#plans.has(id) && this.#view?.records.get(id)?.revision !== revision) this.#plan(id)
        this.#arm()
      })
    this.#firing.set(id, firing)
  }

  /** Returns whether a changed record follows. */
  async #fire(id: string): Promise<boolean> {
    const { host, schedules, onFired } = this.#options
    const record = this.#view?.records.get(id)
    if (!record || 'error' in record) return true
    const { awaits } = record.value
    if (awaits !== undefined) {
      if (await host.isOnBoard(awaits)) return false
      await schedules.jobEnded(id, { uuid: awaits })
      return true
    }
    const fired = await fire(record, {
      ...{ store: host.records.of(SCHEDULES), rules: this.#rules, turns: this.#turns, now: () => host.now() },
      flowRules: () => host.flowRules(),
      cancel: (uuid, reason) => host.cancelJob(uuid, reason),
    })
    this.#reported.delete(id)
    if (fired) onFired(fired)
    else this.#refreshNames(NEW_NAMES_MS)
    return fired !== undefined
  }

  #report(id: string, error: Error): void {
    if (this.#reported.get(id) === error.message) return
    this.#reported.set(id, error.message)
    this.#options.onError(error)
  }

  /** Reads the record again; if it has not changed, tries to fire again after a pause. */
  #readAgain(id: string): void {
    if (this.#isClosed) return
    this.#view?.onHints([{ kind: SCHEDULES.name, id }])
    if (!this.#plans.has(id)) this.#plan(id, { notBefore: this.#options.host.now() + RETRY_MS })
  }

  // --- Turns ------------------------------------------------------------------------------------------------------

  /** Returns by how much this conductor waits longer than the first one, for this schedule. */
  #turnMs(id: string): number {
    const own = hash(`${id}\n${this.#options.name}`)
    const before = this.#names.filter((name) => name !== this.#options.name && hash(`${id}\n${name}`) < own).length
    return Math.min(before * TURN_MS, MAX_TURN_MS)
  }

  /** Reads the names again, unless they are newer. Old names only cost a refused transaction, or some milliseconds. */
  #refreshNames(olderThanMs: number): void {
    if (this.#clock.monotonic() - this.#namesReadAt >= olderThanMs) this.#readNames().catch(() => undefined)
  }

  async #readNames(): Promise<void> {
    this.#namesReadAt = this.#clock.monotonic()
    this.#names = await this.#options.host.conductorNames()
  }
}

/** Returns a number from a text by the hash FNV-1a, mixed so that similar texts have very different numbers. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  return (value ^ (value >>> 13)) >>> 0
}
