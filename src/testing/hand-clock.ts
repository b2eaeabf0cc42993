/** A clock that stands still until somebody turns it. */
import { setImmediate as soon } from 'node:timers'
import type { AlarmClock, AlarmKind } from '../core/alarm-clock.ts'
import { Condition } from '../core/async/condition.ts'
import { InvalidArgument } from '../core/errors.ts'
import { type Duration, toMilliseconds } from '../core/time.ts'
import { type WaitLimit, withinLimit } from './patience.ts'

/** Somebody waits for this time to come. */
export interface SetAlarm {
  readonly at: Date
  /**
   * `delay`: a job rests on the board. `pause`: a retry waits for its next attempt. `deadline`: of a task, flow or job.
   * `review`: the board looks whether conductors know the flows of jobs that others wait behind.
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
 * the board has it: see {@link Workbench}. What somebody is ready to wait for an answer (`timeout`) is real time, and so
 * are the times that logbooks note.
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
  /** How often each kind is being skipped. */
  readonly #skipped = new Map<AlarmKind, number>()

  /** @param options.now what it shows at first; the time as it is by default */
  constructor(options: { readonly now?: Date } = {}) {
    const { now = new Date() } = options
    if (!(now instanceof Date) || Number.isNaN(now.getTime()))
      throw new InvalidArgument('a ManualClock: now has to be a Date, as in { now: new Date(0) }')
    this.#now = now.getTime()
  }

  /** In milliseconds since 1970. */
  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#now
  }

  /** Who waits for what time to come, the first first. */
  get alarms(): readonly SetAlarm[] {
    return this.#sortedAlarms().map(({ time, kind }) => ({ at: new Date(time), kind }))
  }

  /** For boards, conductors and engines. */
  alarm(ms: number, { kind, ring }: { readonly kind: AlarmKind; readonly ring: () => void }): Disposable {
    const alarm = { time: this.#now + ms, kind, ring }
    this.#alarms.add(alarm)
    this.#changed.notify()
    this.#skipSoon()
    return { [Symbol.dispose]: () => this.#alarms.delete(alarm) }
  }

  /**
   * Turns it on. Whoever waited for a time up to then is woken, in order, each when the clock shows that time. What they do
   * then takes its turns of the event loop as always: await the drain, or a spy, before looking.
   *
   * @throws InvalidArgument for what is no duration
   */
  advance(by: Duration): void {
    this.#advanceTo(this.#now + toMilliseconds(by, 'advance'))
  }

  /**
   * Turns it on to the next time that somebody waits for, for that reason if one is named. A `review` has to be named: a
   * board makes one after the other for as long as it is blocked, and no work waits for them.
   *
   * @returns whether there was one
   */
  advanceToNext(kind?: AlarmKind): boolean {
    const next = this.#sortedAlarms().find((alarm) =>
      kind === undefined ? alarm.kind !== 'review' : alarm.kind === kind,
    )
    if (next) this.#advanceTo(next.time)
    return next !== undefined
  }

  /**
   * Resolves once somebody waits for it for that reason.
   *
   * @returns for how many milliseconds, by this clock
   * @throws Timeout when nobody does in time, saying who waits for what
   * @example
   * const draining = bench.drain()
   * await bench.clock.awaited('deadline')     // the task runs
   * bench.clock.advance('30s')                // and takes too long
   * await draining
   */
  awaited(kind: AlarmKind, limit: WaitLimit = {}): Promise<number> {
    const found = () => this.#sortedAlarms().find((alarm) => alarm.kind === kind)
    const late = () =>
      `nobody waits for a ${kind} (${[...this.#alarms].map((one) => one.kind).join(', ') || 'nor for anything'})`
    const look = async (options: { signal: AbortSignal }) => {
      let alarm = found()
      for (; !alarm; alarm = found()) await this.#changed.wait(options)
      return alarm.time - this.#now
    }
    return withinLimit(limit, look, late)
  }

  /**
   * Until it is disposed, nobody waits long for that reason: as soon as nothing else is to be done in this turn of the event
   * loop, the clock turns on to the next such time. Deadlines that come before it pass.
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
