/**
 * Tracks which of the jobs that are being claimed were changed by other clients meanwhile, as the change feed shows.
 */
import type { BoardChange } from '../../../backend.ts'

interface TrackedClaim extends Disposable {
  /** The conflict with the claim, if there is one: another change of the job, or its end. */
  readonly conflict: 'change' | 'end' | undefined
}

/**
 * The changes that make the backend reject a claim that was chosen before them. A cancel request is not one of them.
 */
const CONFLICTING_KINDS: ReadonlySet<BoardChange['kind']> = new Set<BoardChange['kind']>(['updated', 'gone', 'claimed'])

export class ConflictTracker {
  readonly #tracked = new Map<string, { overtakenBy: TrackedClaim['conflict'] }>()

  /** Tracks a job from now until the result is disposed. Only one claim of a job is tracked at a time. */
  track(id: string): TrackedClaim {
    const tracked: { overtakenBy: TrackedClaim['conflict'] } = { overtakenBy: undefined }
    this.#tracked.set(id, tracked)
    return {
      get conflict() {
        return tracked.overtakenBy
      },
      [Symbol.dispose]: () => {
        if (this.#tracked.get(id) === tracked) this.#tracked.delete(id)
      },
    }
  }

  /** Applies changes of the board to the tracked claims. */
  changed(batch: readonly BoardChange[]): void {
    if (this.#tracked.size === 0) return
    for (const { id, kind } of batch) {
      const tracked = CONFLICTING_KINDS.has(kind) ? this.#tracked.get(id) : undefined
      if (tracked) tracked.overtakenBy = kind === 'gone' ? 'end' : 'change'
    }
  }
}
