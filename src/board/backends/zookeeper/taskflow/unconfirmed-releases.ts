/**
 * Locks that are deleted before their postings.
 *
 * A settle of this library changes the posting first and deletes the lock last, so a client that sees the lock deleted
 * knows the final state. TaskFlow consumes in the opposite order: for a moment the job looks abandoned although it is
 * done. TaskFlow's abandon, like a death, leaves the posting unchanged. So on a shared board the release is not
 * reported at once when a lock is deleted alone. All changes of one transaction arrive before the answer to any later
 * request, so one request later it is known whether the posting is deleted too. Until then the job counts as claimed.
 * This costs one round trip and avoids claims that must fail.
 */
import type { BoardChange } from '../../../contract/index.ts'
import type { ReleaseFilter, ReleaseFilterOptions } from '../store/board-kind.ts'

export class UnconfirmedReleases implements ReleaseFilter {
  readonly #options: ReleaseFilterOptions
  /** Jobs whose lock was deleted, with the request that confirms the release. */
  readonly #held = new Map<string, symbol>()
  /**
   * The last change of the posting since the job was last claimed: the deletion of the lock that follows belongs to it.
   */
  readonly #first = new Map<string, 'updated' | 'gone'>()
  readonly #asking = new Set<Promise<void>>()

  constructor(options: ReleaseFilterOptions) {
    this.#options = options
  }

  confirmed(changes: readonly BoardChange[]): BoardChange[] {
    const question = Symbol('question')
    const believed = changes.flatMap((change) => this.#isConfirmed(change, question))
    const held = [...this.#held].filter(([, answering]) => answering === question).map(([id]) => id)
    if (held.length > 0) this.#ask(held, question)
    return believed
  }

  clear(): void {
    this.#held.clear()
    this.#first.clear()
  }

  async whenSettled(): Promise<void> {
    await Promise.all(this.#asking)
  }

  #isConfirmed(change: BoardChange, question: symbol): BoardChange[] {
    const { kind, id } = change
    const held = this.#held.has(id)
    if (kind === 'released') {
      const first = this.#first.get(id)
      this.#first.delete(id)
      if (first) return [change]
      this.#held.set(id, question)
      return []
    }
    if (kind === 'gone' && held) {
      this.#held.delete(id)
      return [change]
    }
    if (kind === 'updated' || kind === 'gone') this.#first.set(id, kind)
    if (kind !== 'claimed') return [change]
    if (this.#first.get(id) === 'updated') this.#first.delete(id)
    this.#held.delete(id)
    return held ? [{ kind: 'released', id }, change] : [change]
  }

  #ask(ids: readonly string[], question: symbol): void {
    const answer = this.#options
      .sync()
      // Without an answer a gap follows. If no gap follows, a claim that fails is better than a job that is never
      // claimed.
      .catch(() => undefined)
      .then(() => {
        const released = ids.filter((id) => this.#held.get(id) === question)
        for (const id of released) this.#held.delete(id)
        for (const [id, first] of this.#first) if (first === 'gone') this.#first.delete(id)
        if (released.length > 0) this.#options.onReleased(released.map((id) => ({ kind: 'released', id })))
      })
      .finally(() => this.#asking.delete(answer))
    this.#asking.add(answer)
  }
}
