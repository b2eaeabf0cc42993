/** A clock that stands still until the test advances it. */
import { setImmediate as soon } from 'node:timers'
import { Condition } from '../core/async/abort.ts'
import { InvalidArgument, isDate } from '../core/errors.ts'
import { type AlarmClock, type AlarmKind, type Duration, toMilliseconds } from '../core/time.ts'
import { type WaitLimit, withinLimit } from './wait-limit.ts'

/** An alarm that code has set on the clock. */
export interface SetAlarm {
  readonly at: Date
  /**
   * `delay`: a job rests on the board. `pause`: a retry waits for its next attempt. `deadline`: of a task, flow or job.
   * `limit`: a call of `limits.take` waits for tokens. `review`: the board looks whether conductors know the flows of jobs that others wait
   * behind. `expiry`: a job goes to the trash if it was not started by then.
   */
  readonly kind: AlarmKind
}

interface PendingAlarm {
  readonly time: number
  readonly kind: AlarmKind
  readonly ring: () => void
}

/**
 * Delays of jobs, their rests after failed runs, pauses of retries, and deadlines of jobs, flows and tasks go by it, where
 * the board has it: see `Workbench`. Timeouts of calls (`timeout`) use real time, and so do the times in logbooks.
 *
 * @example
 * await bench.board.post(remind, { to: 'Ada' }, { delay: '1d' })
 * await bench.drain()             // nothing is due
 * bench.clock.advance('1d')
 * await bench.drain()             // Ada is reminded
 */
export class ManualClock implements AlarmClock {
  #now: number
  readonly #alarms = new Set<PendingAlarm>()
  readonly #changed = new Condition()
  /** The number of active skips of each kind. */
  readonly #skipped = new Map<AlarmKind, number>()

  /** @param options.now what it shows at first; the time as it is by default */
  constructor(options: { readonly now?: Date } = {}) {
    const { now = new Date() } = options
    if (!isDate(now) || Number.isNaN(now.getTime()))
      throw new InvalidArgument('a ManualClock: now has to be a Date, as in { now: new Date(0) }')
    this.#now = now.getTime()
  }

  /** Returns the time in milliseconds since 1970. */
  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#now
  }

  /** The set alarms, the earliest first. */
  get alarms(): readonly SetAlarm[] {
    return this.#sortedAlarms().map(({ time, kind }) => ({ at: new Date(time), kind }))
  }

  /** Sets an alarm: boards, conductors and engines call it. */
  alarm(ms: number, { kind, ring }: { readonly kind: AlarmKind; readonly ring: () => void }): Disposable {
    const alarm = { time: this.#now + ms, kind, ring }
    this.#alarms.add(alarm)
    this.#changed.notify()
    this.#skipSoon()
    return { [Symbol.dispose]: () => this.#alarms.delete(alarm) }
  }

  /**
   * Advances the clock. All alarms up to the new time ring in order, each when the clock shows its time. Code that they wake
   * runs in later turns of the event loop: await the drain, or a spy, before checks.
   *
   * @throws InvalidArgument for an invalid duration
   */
  advance(by: Duration): void {
    this.#advanceTo(this.#now + toMilliseconds(by, 'advance'))
  }

  /**
   * Advances the clock to the next alarm, of that kind if one is named. A `review` or an `expiry` has to be named: a blocked board sets
   * reviews one after the other, and no work waits for either.
   *
   * @returns whether there was one
   */
  advanceToNext(kind?: AlarmKind): boolean {
    const next = this.#sortedAlarms().find((alarm) =>
      kind === undefined ? alarm.kind !== 'review' && alarm.kind !== 'expiry' : alarm.kind === kind,
    )
    if (next) this.#advanceTo(next.time)
    return next !== undefined
  }

  /**
   * Resolves once an alarm of that kind is set.
   *
   * @returns the time until it rings, in milliseconds of this clock
   * @throws Timeout when none is set in time, naming the kinds of the set alarms
   * @example
   * const draining = bench.drain()
   * await bench.clock.awaited('deadline')     // the task runs
   * bench.clock.advance('30s')                // and takes too long
   * await draining
   */
  awaited(kind: AlarmKind, limit: WaitLimit = {}): Promise<number> {
    const found = () => this.#sortedAlarms().find((alarm) => alarm.kind === kind)
    const late = () =>
      `no alarm of kind ${kind} is set (set: ${[...this.#alarms].map((one) => one.kind).join(', ') || 'none'})`
    const look = async (options: { signal: AbortSignal }) => {
      let alarm = found()
      for (; !alarm; alarm = found()) await this.#changed.wait(options)
      return alarm.time - this.#now
    }
    return withinLimit(limit, look, late)
  }

  /**
   * Skips waits of that kind, until the result is disposed: at the end of each turn of the event loop, the clock advances to the
   * next such alarm. Deadlines before it pass.
   *
   * @example using skipping = clock.skip('pause')
   */
  skip(kind: AlarmKind): Disposable {
    this.#skipped.set(kind, (this.#skipped.get(kind) ?? 0) + 1)
    this.#skipSoon()
    let over = false
    return {
      [Symbol.dispose]: () => {
        if (!over) this.#skipped.set(kind, (this.#skipped.get(kind) ?? 1) - 1)
        over = true
      },
    }
  }

  #sortedAlarms(): PendingAlarm[] {
    return [...this.#alarms].sort((a, b) => a.time - b.time)
  }

  #advanceTo(time: number): void {
    for (let [next] = this.#sortedAlarms(); next && next.time <= time; [next] = this.#sortedAlarms()) {
      this.#now = Math.max(this.#now, next.time)
      this.#alarms.delete(next)
      next.ring()
    }
    this.#now = Math.max(this.#now, time)
  }

  #isSkipped({ kind }: PendingAlarm): boolean {
    return (this.#skipped.get(kind) ?? 0) > 0
  }

  #skipSoon(): void {
    if (![...this.#alarms].some((alarm) => this.#isSkipped(alarm))) return
    soon(() => {
      const next = this.#sortedAlarms().find((alarm) => this.#isSkipped(alarm))
      if (!next) return
      this.#advanceTo(next.time)
      this.#skipSoon()
    })
  }
}
