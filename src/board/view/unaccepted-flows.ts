/**
 * Finds flows that no living conductor knows while jobs of others wait behind theirs for a resource, and after a while lets
 * nobody wait for them: a job that nobody would ever claim would otherwise block its resources for ever.
 *
 * That is safe, because the queue's order only is fairness: who may hold a resource is decided by the transaction of the claim.
 *
 * **What it costs.** Nothing where no job waits behind another for a resource. Else the lines are looked through, and the
 * conductors' entities read, when a flow may have been unknown for long enough: with an hour, every 15 to 22 minutes; every 30 to
 * 45 seconds while there is such a flow, so that its jobs get their turn when a conductor comes that knows it. A change of the
 * board reads nothing.
 *
 * **Since when** no conductor knows a flow is what this process has seen itself. Of a flow that it has never seen known, it is
 * since the first of its jobs waits; so that a process that ends sooner, or a short-lived one, is not blocked for ever. In its
 * first minute a process sets nothing aside, because conductors that are started together do not all register at once. A job
 * that is claimed proves that somebody knows its flow, who may be no conductor.
 */

import { systemAlarmClock } from '../../core/alarm-clock.ts'
import { JobboardError } from '../../core/errors.ts'
import { MAX_TIMER_MS } from '../../core/time.ts'
import type { Backend, Entity } from '../backend.ts'
import type { JobEntry } from '../model/entry.ts'
import { CONDUCTOR_KIND, type FlowReference, isKnownToAny } from '../model/known-work.ts'
import type { ClaimQueue, WaitingFlow } from '../queue/queue.ts'

/** How long after a process began to claim it sets nothing aside: conductors that restart together may not all be there yet. */
const STARTUP_GRACE_MS = 60_000
/** The shortest time between two looks at the conductors; up to half as much is added, so that processes spread. */
const MIN_CHECK_PERIOD_MS = 30_000
/** The part of `after` after which a flow that was known is looked at again. */
const CHECK_FRACTION = 1 / 4

/** What is known of a flow. Times are in milliseconds on the board's clock. */
type FlowStatus =
  | { readonly knownAt: number; readonly lookAt: number }
  | { readonly unknownSince: number; readonly lookedAt: number; readonly lookAt: number }

export interface UnacceptedFlowsOptions {
  readonly backend: Pick<Backend, 'entities' | 'now' | 'clock'>
  readonly queue: Pick<ClaimQueue, 'contended' | 'contendingFlows' | 'setAside' | 'claimedFlows'>
  /** In milliseconds. */
  readonly after: number
  readonly signal: AbortSignal
  /** Jobs of this work, the first of which is given, hold nobody back from now on. */
  readonly onUnaccepted: (work: FlowReference, first: JobEntry) => void
  /** Something may have become claimable. */
  readonly onChange: () => void
  readonly onError: (error: unknown) => void
}

export class UnacceptedFlows {
  readonly #options: UnacceptedFlowsOptions
  /** By the key of the work. */
  readonly #statuses = new Map<string, FlowStatus>()
  #setAside: ReadonlySet<string> = new Set()
  /** When somebody began to claim here. */
  #begunAt: number | undefined
  #checkAlarm: Disposable | undefined
  #isChecking = false

  constructor(options: UnacceptedFlowsOptions) {
    this.#options = options
  }

  /** In milliseconds. */
  get after(): number {
    return this.#options.after
  }

  /** Somebody claims here, or listens: who only posts and looks does not ask for conductors. */
  start(): void {
    if (this.#begunAt !== undefined) return
    this.#begunAt = this.#options.backend.now()
    this.update()
  }

  /** To be called after changes. Costs nothing unless a job has just begun to wait behind another, or one was claimed. */
  update(): void {
    const { queue, backend, signal } = this.#options
    if (this.#begunAt === undefined || !queue.contended || signal.aborted) return
    const now = backend.now()
    for (const key of queue.claimedFlows()) this.#statuses.set(key, this.#knownAt(now))
    if ([...this.#setAside].some((key) => !this.#isUnaccepted(key))) this.#apply(queue.contendingFlows())
    if (this.#checkAlarm || this.#isChecking) return
    const waiting = queue.contendingFlows()
    this.#arm(waiting, now)
    this.#apply(waiting)
  }

  /** Takes in what somebody here has read of the conductors that live. */
  applyConductors(conductors: readonly Entity[]): void {
    if (this.#begunAt === undefined) return
    const { queue, backend } = this.#options
    const now = backend.now()
    const waiting = queue.contendingFlows()
    for (const [key, { work, since }] of waiting) {
      const known = isKnownToAny(work, conductors)
      this.#statuses.set(key, known ? this.#knownAt(now) : this.#unknownAt(now, { key, since }))
    }
    this.#forget(waiting, now)
    this.#arm(waiting, now)
    this.#apply(waiting)
  }

  stop(): void {
    this.#checkAlarm?.[Symbol.dispose]()
    this.#checkAlarm = undefined
  }

  #knownAt(now: number): FlowStatus {
    return { knownAt: now, lookAt: now + addJitter(Math.max(MIN_CHECK_PERIOD_MS, this.after * CHECK_FRACTION)) }
  }

  #unknownAt(now: number, { key, since }: { key: string; since: number }): FlowStatus {
    const former = this.#statuses.get(key)
    const unknownSince = !former ? since : 'unknownSince' in former ? former.unknownSince : now
    const ripe = this.#unacceptedAt(unknownSince)
    return { unknownSince, lookedAt: now, lookAt: ripe > now ? ripe : now + addJitter(MIN_CHECK_PERIOD_MS) }
  }

  /** From when on a flow is unaccepted, if no conductor knows it then. */
  #unacceptedAt(unknownSince: number): number {
    const { after } = this.#options
    return Math.max(unknownSince + after, (this.#begunAt ?? 0) + Math.min(after, STARTUP_GRACE_MS))
  }

  #isUnaccepted(key: string): boolean {
    const status = this.#statuses.get(key)
    return (
      status !== undefined && 'unknownSince' in status && status.lookedAt >= this.#unacceptedAt(status.unknownSince)
    )
  }

  /** Forgets flows that no job waits for any more, once what is known of them has become old. */
  #forget(waiting: ReadonlyMap<string, WaitingFlow>, now: number): void {
    for (const [key, status] of this.#statuses) {
      const counts = status.lookAt > now || ('knownAt' in status && status.knownAt + this.after > now)
      if (waiting.has(key) || counts) continue
      this.#statuses.delete(key)
    }
  }

  #apply(waiting: ReadonlyMap<string, WaitingFlow>): void {
    const { queue, onUnaccepted, onChange } = this.#options
    const former = this.#setAside
    const aside = new Set([...waiting.keys()].filter((key) => this.#isUnaccepted(key)))
    if (aside.size === former.size && [...aside].every((key) => former.has(key))) return
    this.#setAside = aside
    queue.setAside(aside)
    for (const [key, { work, first }] of waiting) if (aside.has(key) && !former.has(key)) onUnaccepted(work, first)
    onChange()
  }

  /** Sets the alarm for the first look that is due; none where no job waits behind another. */
  #arm(waiting: ReadonlyMap<string, WaitingFlow>, now: number): void {
    this.stop()
    if (!this.#options.queue.contended || this.#options.signal.aborted) return
    // Those that wait may name no flow.
    if (waiting.size === 0) {
      this.#checkAlarm = this.#alarmIn(MIN_CHECK_PERIOD_MS)
      return
    }
    const times = [...waiting].map(([key, { since }]) => this.#statuses.get(key)?.lookAt ?? this.#unacceptedAt(since))
    this.#checkAlarm = this.#alarmIn(Math.max(0, Math.min(...times) - now))
  }

  #alarmIn(ms: number): Disposable {
    const { clock } = this.#options.backend
    const ring = () => {
      this.#checkAlarm = undefined
      this.#checkConductors().catch(this.#options.onError)
    }
    if (clock && clock !== systemAlarmClock) return clock.alarm(ms, { kind: 'review', ring })
    // It keeps no process alive: nobody may be waiting for a job.
    const timer = setTimeout(ring, Math.min(ms, MAX_TIMER_MS)).unref()
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  }

  /** Looks at the conductors, if there is a flow to look for still. */
  async #checkConductors(): Promise<void> {
    const { queue, backend, signal } = this.#options
    const now = backend.now()
    const waiting = queue.contendingFlows()
    this.#apply(waiting)
    const due = [...waiting].some(
      ([key, { since }]) => (this.#statuses.get(key)?.lookAt ?? this.#unacceptedAt(since)) <= now,
    )
    if (!due) return this.#arm(waiting, now)
    this.#isChecking = true
    try {
      this.applyConductors(await backend.entities(CONDUCTOR_KIND))
    } catch (error) {
      // Without a connection, or with a board that was closed, there is nothing to claim either.
      if (!signal.aborted && !(error instanceof JobboardError && error.retryable)) throw error
    } finally {
      this.#isChecking = false
      if (!this.#checkAlarm && queue.contended && !signal.aborted) this.#checkAlarm = this.#alarmIn(MIN_CHECK_PERIOD_MS)
    }
  }
}

function addJitter(ms: number): number {
  return ms * (1 + Math.random() / 2)
}
