/**
 * How a job ended whose posting was found to be gone. Where answers and news come over different connections, an answer may be
 * the first to say that it is gone, and does not say how it ended.
 */
import { NotConnected } from '../../core/errors.ts'
import type { Sections } from '../backend.ts'
import type { Entry } from '../entry.ts'

export interface LastWordsOptions {
  /** Of a backend that tells of parts: of one that does not, all news come before the answer. */
  readonly sections: Pick<Sections, 'fates'> | undefined
  /** Whether everything was heard of that was told before an answer. */
  readonly current: () => boolean
  /** It is there after all. */
  readonly there: (entry: Entry) => void
  /** It has left the board, as its entry says. */
  readonly ended: (entry: Entry, id: string) => void
  readonly failed: (error: unknown) => void
}

export class LastWords {
  readonly #options: LastWordsOptions

  constructor(options: LastWordsOptions) {
    this.#options = options
  }

  /** Finds out, now or later, and tells. */
  async of(entry: Entry, id: string): Promise<void> {
    const { sections, current, there, ended, failed } = this.#options
    if (!sections || entry.trashing) {
      ended(entry, id)
      return
    }
    try {
      const [fate] = await sections.fates([id])
      if (entry.ended || !current()) return
      if (fate === 'there') {
        there(entry)
        return
      }
      entry.trashing ||= fate === 'trashed'
      ended(entry, id)
    } catch (error) {
      // Without a connection its return is a gap, which is closed by a listing.
      if (!(error instanceof NotConnected)) failed(error)
    }
  }
}
