/**
 * Locks that go before their postings.
 *
 * Every settle of ours changes the posting first and takes the lock last, so whoever sees the lock go knows all. TaskFlow
 * consumes the other way round: for an instant the job looks given back, though it is done. And its abandon, like a death,
 * leaves the posting as it is. So on a shared board a lock that goes alone is not believed at once: all changes of one
 * transaction come before the answer to anything younger, so one question later it is known whether the posting is gone
 * too. Until then the job counts as claimed, which costs a round trip and never a claim in vain.
 */
import type { BoardChange } from '../../../backend.ts'

export interface UnconfirmedReleasesOptions {
  /** A question to the server; when it is answered, the rest of what was told so far has been heard. */
  readonly sync: () => Promise<unknown>
  /** The job was given back indeed, or its owner is dead. */
  readonly onReleased: (changes: readonly BoardChange[]) => void
}

export class UnconfirmedReleases {
  readonly #options: UnconfirmedReleasesOptions
  /** Jobs whose lock is gone, with the question that decides. */
  readonly #held = new Map<string, symbol>()
  /** What became of the posting since it was last claimed: the lock that follows goes with it. */
  readonly #first = new Map<string, 'updated' | 'gone'>()
  readonly #asking = new Set<Promise<void>>()

  constructor(options: UnconfirmedReleasesOptions) {
    this.#options = options
  }

  /** The changes that can be believed now. */
  confirmed(changes: readonly BoardChange[]): BoardChange[] {
    const question = Symbol('question')
    const believed = changes.flatMap((change) => this.#isConfirmed(change, question))
    const held = [...this.#held].filter(([, asked]) => asked === question).map(([id]) => id)
    if (held.length > 0) this.#ask(held, question)
    return believed
  }

  /** A gap: the listing that follows says it all. */
  clear(): void {
    this.#held.clear()
    this.#first.clear()
  }

  /** Resolves when nothing that was held back at the call is any more. */
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
    const asked = this.#options
      .sync()
      // Without an answer there is a gap to come; and where there is none, a claim in vain is better than a job forgotten.
      .catch(() => undefined)
      .then(() => {
        const released = ids.filter((id) => this.#held.get(id) === question)
        for (const id of released) this.#held.delete(id)
        for (const [id, first] of this.#first) if (first === 'gone') this.#first.delete(id)
        if (released.length > 0) this.#options.onReleased(released.map((id) => ({ kind: 'released', id })))
      })
      .finally(() => this.#asking.delete(asked))
    this.#asking.add(asked)
  }
}
