/** What this process posts, as the view comes to know it: by the answer to the post, which may come before the news or after. */
import type { Sections, Stored } from '../backend.ts'
import { type Entry, newEntry } from '../entry.ts'
import type { ClaimQueue } from '../queue/queue.ts'
import type { Postings } from './postings.ts'
import type { ViewJobs } from './view-jobs.ts'

export interface OwnPostsOptions {
  readonly jobs: ViewJobs
  readonly postings: Postings
  readonly queue: ClaimQueue
  /** Of a backend that tells of parts. */
  readonly sections: Sections | undefined
  /** Whether everything was heard of that was told before an answer. */
  readonly current: () => boolean
  readonly posted: (entry: Entry) => void
  readonly ended: (entry: Entry, id: string) => void
  readonly evaluate: () => void
}

export class OwnPosts {
  readonly #options: OwnPostsOptions

  constructor(options: OwnPostsOptions) {
    this.#options = options
  }

  /**
   * A job that this process posted. The change comes before the answer, so the view knows the job by now, unless it has
   * ended already, is outside the window, or a gap is open; then the listing may be older than the post, and the entry is
   * marked as newer.
   */
  learn(stored: Stored): Entry {
    const { jobs, postings, current, evaluate } = this.#options
    const known = jobs.get(stored.id)
    const entry = known ?? (current() ? this.#unseen(stored) : jobs.add(stored.id, 'inside'))
    if (entry.standing === 'outside') return entry
    if (!known && !entry.ended) entry.newerThanGap = true
    if (entry.ended) entry.stored = stored
    else if (entry.changes === 0 && entry.content === 'unread') postings.adopt(entry, stored)
    else this.#adoptOld(entry, stored)
    postings.kept.arrived(entry)
    evaluate()
    return entry
  }

  /** The answer to a post took so long that the posting has changed since: it says what the job is, not how it stands. */
  #adoptOld(entry: Entry, stored: Stored): void {
    const { jobs, queue, posted } = this.#options
    if (entry.stored) return
    entry.stored = stored
    entry.content = 'stale'
    jobs.index(entry)
    queue.update(entry)
    posted(entry)
  }

  /** One that is not in the view although it was told of: it has left the board, or is outside the window. */
  #unseen(stored: Stored): Entry {
    const { handles } = this.#options.jobs
    const end = handles.endOf(stored.id) ?? (this.#options.sections ? undefined : 'COMPLETE')
    if (end) return { ...newEntry(stored.id), ended: end }
    const entry = handles.of(stored.id)
    if (!entry.stored) {
      entry.stored = stored
      entry.content = 'fresh'
      this.#options.posted(entry)
    }
    if (handles.mayHaveEnded(stored.id)) void this.#findOut(entry, stored.id)
    return entry
  }

  async #findOut(entry: Entry, id: string): Promise<void> {
    const { sections, ended } = this.#options
    const [fate = 'there'] = (await sections?.fates([id]).catch(() => undefined)) ?? []
    if (fate === 'there' || entry.standing !== 'outside' || entry.ended) return
    entry.trashing = fate === 'trashed'
    ended(entry, id)
  }
}
