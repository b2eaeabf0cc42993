/** Which of the jobs that are being claimed were changed by others meanwhile, as the changes tell. */
import type { Change } from '../backend.ts'

interface Tracked extends Disposable {
  readonly overtaken: boolean
}

/** What speaks against a claim that was chosen before. A cancel request does not. */
const AGAINST: ReadonlySet<Change['kind']> = new Set<Change['kind']>(['updated', 'gone', 'claimed'])

export class Overtaking {
  readonly #tracked = new Map<string, { overtaken: boolean }>()

  /** From now until it is disposed, by one claim of the job at a time. */
  track(id: string): Tracked {
    const tracked = { overtaken: false }
    this.#tracked.set(id, tracked)
    return {
      get overtaken() {
        return tracked.overtaken
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
      if (tracked) tracked.overtaken = true
    }
  }
}
