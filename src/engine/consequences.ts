/**
 * What a resolution does to where everything stands: whose undoing begins, and which retry begins another attempt when it
 * is over. What is given up already stays so: reverting everything wins over every retry.
 */
import type { AlarmClock } from '../core/alarm-clock.ts'
import type { AtomNode } from '../flow/index.ts'
import type { Resolution } from './resolver.ts'
import type { Standing } from './standing.ts'
import type { Waits } from './waits.ts'

export class Consequences {
  readonly #standing: Standing
  readonly #waits: Waits
  readonly #clock: AlarmClock
  #everything = false

  constructor(options: { standing: Standing; waits: Waits; clock: AlarmClock }) {
    this.#standing = options.standing
    this.#waits = options.waits
    this.#clock = options.clock
  }

  /** Whether everything is being reverted. */
  get revertingAll(): boolean {
    return this.#everything
  }

  apply(resolution: Resolution): void {
    if (resolution.kind === 'REVERT_ALL') this.revertAll()
    else if (!this.#everything) this.#revertAfter(resolution)
  }

  revertAll(): void {
    if (this.#everything) return
    this.#everything = true
    this.#standing.revertAll()
    this.#endWaits()
  }

  #revertAfter(resolution: Exclude<Resolution, { kind: 'REVERT_ALL' }>): void {
    const { retry } = resolution
    if (this.#standing.record(retry).intention === 'REVERT') return
    this.#standing.intend(retry, resolution.kind)
    if (resolution.kind === 'RETRY') this.#waitBefore(retry, resolution.after)
    this.#standing.revertAfter(retry)
    this.#standing.frontier.consider(retry)
    this.#endWaits()
  }

  /** On record, so that the wait ends at the same time for whoever resumes. */
  #waitBefore(retry: AtomNode, ms: number): void {
    const notBefore = ms > 0 ? new Date(this.#clock.now() + ms) : undefined
    const before = this.#standing.record(retry).meta['notBefore']
    if (notBefore || before) this.#standing.ledger.note(retry.atom.name, { meta: { notBefore } })
  }

  /** How long, in milliseconds, the retry has to wait yet. */
  waitLeft(retry: AtomNode): number {
    const { notBefore } = this.#standing.record(retry).meta
    return notBefore instanceof Date ? notBefore.getTime() - this.#clock.now() : 0
  }

  /** Nobody waits to try again what is given up. */
  #endWaits(): void {
    for (const node of this.#waits.nodes) {
      if (this.#standing.record(node).intention !== 'RETRY') this.#waits.end(node)
    }
  }
}
