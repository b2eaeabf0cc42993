/** Which of the jobs that are being claimed were changed by others meanwhile, as the changes tell. */
import type { BoardChange } from '../../../backend.ts'

interface TrackedClaim extends Disposable {
  /** What speaks against the claim, once something does: another change of the job, or its end. */
  readonly conflict: 'change' | 'end' | undefined
}

/** The changes that refuse a claim which was chosen before them. A cancel request does not. */
const CONFLICTING_KINDS: ReadonlySet<BoardChange['kind']> = new Set<BoardChange['kind']>(['updated', 'gone', 'claimed'])

export class ConflictTracker {
  readonly #tracked = new Map<string, { overtakenBy: TrackedClaim['conflict'] }>()

  /** From now until it is disposed, by one claim of the job at a time. */
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

  changed(batch: readonly BoardChange[]): void {
    if (this.#tracked.size === 0) return
    for (const { id, kind } of batch) {
      const tracked = CONFLICTING_KINDS.has(kind) ? this.#tracked.get(id) : undefined
      if (tracked) tracked.overtakenBy = kind === 'gone' ? 'end' : 'change'
    }
  }
}
