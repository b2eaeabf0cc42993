/** Which of the jobs that are being claimed were changed by others meanwhile, as the changes tell. */
import type { Change } from '../backend.ts'

interface Tracked extends Disposable {
  /** What speaks against the claim, once something does: another change of the job, or its end. */
  readonly overtakenBy: 'change' | 'end' | undefined
}

/** The changes that refuse a claim which was chosen before them. A cancel request does not. */
const AGAINST: ReadonlySet<Change['kind']> = new Set<Change['kind']>(['updated', 'gone', 'claimed'])

export class Overtaking {
  readonly #tracked = new Map<string, { overtakenBy: Tracked['overtakenBy'] }>()

  /** From now until it is disposed, by one claim of the job at a time. */
  track(id: string): Tracked {
    const tracked: { overtakenBy: Tracked['overtakenBy'] } = { overtakenBy: undefined }
    this.#tracked.set(id, tracked)
    return {
      get overtakenBy() {
        return tracked.overtakenBy
      },
      [Symbol.dispose]: () => {
        if (this.#tracked.get(id) === tracked) this.#tracked.delete(id)
      },
    }
  }

  changed(batch: readonly Change[]): void {
    if (this.#tracked.size === 0) return
    for (const { id, kind } of batch) {
      const tracked = AGAINST.has(kind) ? this.#tracked.get(id) : undefined
      if (tracked) tracked.overtakenBy = kind === 'gone' ? 'end' : 'change'
    }
  }
}
