/**
 * Tracks which of the jobs that are being claimed were changed by other clients meanwhile, as the change feed shows.
 */
import type { BoardChange } from '../../../contract/index.ts'

/** A job that is being claimed. */
export interface TrackedClaim {
  readonly id: string
  /** The conflict with the claim, if there is one: another change of the job, or its end. */
  conflict: 'change' | 'end' | undefined
}

/**
 * The changes that make the backend reject a claim that was chosen before them. A cancel request is not one of them.
 */
const CONFLICTING_KINDS: ReadonlySet<BoardChange['kind']> = new Set<BoardChange['kind']>(['updated', 'gone', 'claimed'])

export class ConflictTracker {
  readonly #tracked = new Map<string, TrackedClaim>()

  /** Tracks a claim from now until {@link untrack}: a conflict is noted in it. Only one claim of a job is tracked at a time. */
  track(claim: TrackedClaim): void {
    this.#tracked.set(claim.id, claim)
  }

  untrack(tracked: TrackedClaim): void {
    if (this.#tracked.get(tracked.id) === tracked) this.#tracked.delete(tracked.id)
  }

  /** Applies changes of the board to the tracked claims. */
  changed(changes: readonly BoardChange[]): void {
    if (this.#tracked.size === 0) return
    for (const { id, kind } of changes) {
      const tracked = CONFLICTING_KINDS.has(kind) ? this.#tracked.get(id) : undefined
      if (tracked) tracked.conflict = kind === 'gone' ? 'end' : 'change'
    }
  }
}
