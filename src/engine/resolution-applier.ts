/**
 * Applies a resolution to the states of the atoms: marks atoms for revert, and a retry for its next attempt after that. A
 * flow that is given up stays so: reverting everything has precedence over every retry.
 */
import { isDate } from '../core/errors.ts'
import type { AlarmClock } from '../core/time.ts'
import type { AtomNode } from '../flow/index.ts'
import type { AtomStates } from './atom-states.ts'
import type { Resolution } from './resolver.ts'

export class ResolutionApplier {
  readonly #atomStates: AtomStates
  readonly #waits: RetryTimers
  readonly #clock: AlarmClock
  #revertsAll = false

  constructor(options: { atomStates: AtomStates; waits: RetryTimers; clock: AlarmClock }) {
    this.#atomStates = options.atomStates
    this.#waits = options.waits
    this.#clock = options.clock
  }

  /** Whether everything is being reverted. */
  get isRevertingAll(): boolean {
    return this.#revertsAll
  }

  apply(resolution: Resolution): void {
    if (resolution.kind === 'REVERT_ALL') this.revertAll()
    else if (!this.#revertsAll) this.#revertAfter(resolution)
  }

  revertAll(): void {
    if (this.#revertsAll) return
    this.#revertsAll = true
    this.#atomStates.revertAll()
    this.#endWaits()
  }

  #revertAfter(resolution: Exclude<Resolution, { kind: 'REVERT_ALL' }>): void {
    const { retry } = resolution
    if (this.#atomStates.record(retry).intention === 'REVERT') return
    this.#atomStates.intend(retry, resolution.kind)
    if (resolution.kind === 'RETRY') this.#waitBefore(retry, resolution.after)
    this.#atomStates.revertAfter(retry)
    this.#atomStates.frontier.consider(retry)
    this.#endWaits()
  }

  /** Records the end of the wait, so that it is the same in a process that resumes. */
  #waitBefore(retry: AtomNode, ms: number): void {
    const notBefore = ms > 0 ? new Date(this.#clock.now() + ms) : undefined
    const before = this.#atomStates.record(retry).meta['notBefore']
    if (notBefore || before) this.#atomStates.ledger.annotate(retry.atom.name, { meta: { notBefore } })
  }

  /** Returns the remaining wait of the retry, in milliseconds. */
  remainingWait(retry: AtomNode): number {
    const { notBefore } = this.#atomStates.record(retry).meta
    return isDate(notBefore) ? notBefore.getTime() - this.#clock.now() : 0
  }

  /** Ends the waits of retries that were given up. */
  #endWaits(): void {
    for (const node of this.#waits.nodes) {
      if (this.#atomStates.record(node).intention !== 'RETRY') this.#waits.end(node)
    }
  }
}

/** Retries that wait before their next attempt. */
export class RetryTimers {
  readonly #clock: AlarmClock
  #alarms: Map<AtomNode, Disposable> | undefined
  readonly #onOver: (node: AtomNode) => void

  /** @param options.over called with each retry whose wait is over; it checks the time, and may have to wait again */
  constructor({ clock, over }: { clock: AlarmClock; over: (node: AtomNode) => void }) {
    this.#clock = clock
    this.#onOver = over
  }

  get size(): number {
    return this.#alarms?.size ?? 0
  }

  get nodes(): readonly AtomNode[] {
    return [...(this.#alarms?.keys() ?? [])]
  }

  has(node: AtomNode): boolean {
    return this.#alarms?.has(node) ?? false
  }

  begin(node: AtomNode, ms: number): void {
    this.#alarms ??= new Map()
    this.#alarms.set(node, this.#clock.alarm(ms, { kind: 'pause', ring: () => this.end(node) }))
  }

  /** Ends a wait before its time. */
  end(node: AtomNode): void {
    this.#alarms?.get(node)?.[Symbol.dispose]()
    if (this.#alarms?.delete(node)) this.#onOver(node)
  }

  /** Forgets them all. */
  clear(): void {
    for (const alarm of this.#alarms?.values() ?? []) alarm[Symbol.dispose]()
    this.#alarms?.clear()
  }
}
