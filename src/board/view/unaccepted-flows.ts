/**
 * Finds flows that no living conductor knows while other jobs wait behind theirs for a resource, and after a while sets their
 * jobs aside: a job that no process ever claims would otherwise block its resources permanently.
 *
 * That is safe, because the order of the queue is only a matter of fairness: the transaction of the claim decides which job may
 * hold a resource.
 *
 * **Costs.** There are none while no job waits behind another for a resource. Otherwise this class visits the lines, and reads the
 * entities of the conductors, when a flow may have been unknown for long enough: with an hour, every 15 to 22 minutes; every 30 to
 * 45 seconds while there is such a flow, so that its jobs get their turn once a conductor knows it. A change of the board causes
 * no read.
 *
 * **The time since when** no conductor knows a flow is what this process has observed itself. For a flow that it has never seen
 * known, the time begins when the first of its jobs began to wait, so that a short-lived process is not blocked permanently. In its
 * first minute a process sets nothing aside, because conductors that start together do not all register at once. The claim of a
 * job proves that its owner, which need not be a conductor, knows its flow.
 */

import { JobboardError } from '../../core/errors.ts'
import { alarmInBackground, systemAlarmClock } from '../../core/time.ts'
import type { Backend, Entity } from '../contract/index.ts'
import type { JobEntry } from '../model/entry.ts'
import { CONDUCTOR_KIND, type FlowReference, isKnownToAny } from '../model/flow-reference.ts'
import type { ClaimQueue, WaitingFlow } from '../queue/queue.ts'

/** The time after a process began to claim in which it sets nothing aside: conductors that restart together may not all be registered. */
const STARTUP_GRACE_MS = 60_000
/** The shortest time between two looks at the conductors; up to half as much is added, so that processes spread. */
const MIN_CHECK_PERIOD_MS = 30_000
/** The fraction of `after` after which a known flow is checked again. */
const CHECK_FRACTION = 1 / 4

/** The knowledge about a flow. Times are in milliseconds on the board's clock. */
type FlowStatus =
  | { readonly knownAt: number; readonly lookAt: number }
  | { readonly unknownSince: number; readonly lookedAt: number; readonly lookAt: number }

export interface UnacceptedFlowsOptions {
  readonly backend: Pick<Backend, 'entities' | 'clock'>
  readonly queue: Pick<ClaimQueue, 'contended' | 'contendingFlows' | 'setAside' | 'claimedFlows'>
  /** The time in milliseconds after which an unknown flow is unaccepted. */
  readonly after: number
  readonly signal: AbortSignal
  /** Called when jobs of this flow are set aside, with the first of them. */
  readonly onUnaccepted: (work: FlowReference, first: JobEntry) => void
  /** Called when jobs may have become claimable. */
  readonly onChange: () => void
  readonly onError: (error: unknown) => void
}

export class UnacceptedFlows {
  readonly #options: UnacceptedFlowsOptions
  /** The status of each flow, by its key. */
  readonly #statuses = new Map<string, FlowStatus>()
  #setAside: ReadonlySet<string> = new Set()
  /** The time at which claiming began on this board object. */
  #begunAt: number | undefined
  #checkAlarm: Disposable | undefined
  #isChecking = false

  constructor(options: UnacceptedFlowsOptions) {
    this.#options = options
  }

  /** The time in milliseconds after which an unknown flow is unaccepted. */
  get after(): number {
    return this.#options.after
  }

  /** Starts the checks, once this board claims or has a listener: a board that only posts and lists does not read conductors. */
  start(): void {
    if (this.#begunAt !== undefined) return
    this.#begunAt = this.#options.backend.clock.now()
    this.update()
  }

  /** Updates the flows after changes. Costs nothing unless a job has just begun to wait behind another, or one was claimed. */
  update(): void {
    const { queue, backend, signal } = this.#options
    if (this.#begunAt === undefined || !queue.contended || signal.aborted) return
    const now = backend.clock.now()
    for (const key of queue.claimedFlows()) this.#statuses.set(key, this.#knownAt(now))
    if ([...this.#setAside].some((key) => !this.#isUnaccepted(key))) this.#apply(queue.contendingFlows())
    if (this.#checkAlarm || this.#isChecking) return
    const waiting = queue.contendingFlows()
    this.#arm(waiting, now)
    this.#apply(waiting)
  }

  /** Applies a list of the living conductors. */
  applyConductors(conductors: readonly Entity[]): void {
    if (this.#begunAt === undefined) return
    const { queue, backend } = this.#options
    const now = backend.clock.now()
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

  /** Returns the time from which a flow is unaccepted, if no conductor knows it then. */
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

  /** Forgets flows for which no job waits any more, once their status has become old. */
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
    // The waiting jobs may name no flow.
    if (waiting.size === 0) {
      this.#checkAlarm = this.#alarmIn(MIN_CHECK_PERIOD_MS)
      return
    }
    const times = [...waiting].map(([key, { since }]) => this.#statuses.get(key)?.lookAt ?? this.#unacceptedAt(since))
    this.#checkAlarm = this.#alarmIn(Math.max(0, Math.min(...times) - now))
  }

  #alarmIn(ms: number): Disposable {
    const { alarms } = this.#options.backend.clock
    const ring = () => {
      this.#checkAlarm = undefined
      this.#checkConductors().catch(this.#options.onError)
    }
    return alarmInBackground(alarms ?? systemAlarmClock, ms, ring)
  }

  /** Reads the conductors, if there still is a flow to check. */
  async #checkConductors(): Promise<void> {
    const { queue, backend, signal } = this.#options
    const now = backend.clock.now()
    const waiting = queue.contendingFlows()
    this.#apply(waiting)
    const due = [...waiting].some(
      ([key, { since }]) => (this.#statuses.get(key)?.lookAt ?? this.#unacceptedAt(since)) <= now,
    )
    if (!due) return this.#arm(waiting, now)
    this.#isChecking = true
    try {
      this.applyConductors(await backend.entities.list(CONDUCTOR_KIND))
    } catch (error) {
      // Without a connection, or on a closed board, no job can be claimed either.
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
