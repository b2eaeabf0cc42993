/**
 * Keeps what the view knows of jobs that run elsewhere up to date, for those who hold a `Job`: its run, its attempts, and
 * after its end in the trash the attempt that ended it. A claim changes the posting, and a view does not read postings of
 * claimed jobs: most are gone before anybody asks.
 *
 * Only jobs that somebody in this process holds cost a read, and only if they are still claimed a moment later; the read is
 * one for all of them. A board whose jobs nobody holds reads nothing.
 */
import { createDeferred } from '../../core/async/abort.ts'
import type { Backend, StoredJob } from '../backend.ts'
import { isHeld, type JobEntry } from '../model/entry.ts'

/** How long a job must be claimed before its posting is read. */
const READ_DELAY_MS = 50
/** How many postings are asked for at once. */
const BATCH = 512

export interface FollowedJobsOptions {
  readonly backend: Pick<Backend, 'read' | 'trashedEntry'>
  /** Ends everything that goes on in the background. */
  readonly signal: AbortSignal
  /** The posting of an entry has changed. */
  readonly updated: (entry: JobEntry) => void
}

export class FollowedJobs {
  readonly #options: FollowedJobsOptions
  readonly #claimed = new Set<JobEntry>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: FollowedJobsOptions) {
    this.#options = options
  }

  /** Notes that somebody has claimed the job. What this process claims itself is known without a read. */
  claimed(entry: JobEntry): void {
    if (entry.isReserved || !isHeld(entry) || this.#options.signal.aborted) return
    this.#claimed.add(entry)
    this.#timer ??= setTimeout(() => this.#look(), READ_DELAY_MS).unref()
  }

  /** Reads the postings of those that are claimed: as the claims have written them. Throws what the backend throws. */
  async read(entries: Iterable<JobEntry>): Promise<void> {
    const claimed = [...entries].filter(isClaimed)
    for (let from = 0; from < claimed.length; from += BATCH) {
      const batch = claimed.slice(from, from + BATCH).map((entry) => ({ entry, changes: entry.changeCount }))
      const contents = await this.#options.backend.read(batch.map(({ entry }) => entry.id ?? ''))
      batch.forEach(({ entry, changes }, index) => {
        const content = contents[index]
        // Released or changed meanwhile: the view reads it for that.
        if (content && 'posting' in content && isClaimed(entry) && entry.changeCount === changes)
          this.#keep(entry, content)
      })
    }
  }

  /**
   * Resolves the wait for the job's end. One that another process has trashed is looked up in the trash before, because
   * that is where its last attempt is; where that cannot be done the end is told without.
   */
  ended(entry: JobEntry, end: 'COMPLETE' | 'TRASHED'): void {
    const { trashedEntry } = this.#options.backend
    if (end === 'TRASHED' && !entry.settledPosting && entry.id !== undefined && trashedEntry && isHeld(entry)) {
      entry.endDeferred ??= createDeferred()
      void this.#lookInTrash(entry, entry.id)
    } else entry.endDeferred?.resolve(end)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #look(): void {
    this.#timer = undefined
    const entries = [...this.#claimed].filter(isHeld)
    this.#claimed.clear()
    // Without a connection its return is a gap, after which everything is read.
    this.read(entries).catch(() => undefined)
  }

  #keep(entry: JobEntry, content: StoredJob): void {
    const { stored } = entry
    if (stored && stored.revision > content.revision) return
    entry.stored = content
    this.#options.updated(entry)
  }

  async #lookInTrash(entry: JobEntry, id: string): Promise<void> {
    const found = await this.#options.backend.trashedEntry?.(id).catch(() => undefined)
    if (found) entry.settledPosting = found.posting
    entry.endDeferred?.resolve('TRASHED')
  }
}

function isClaimed({ claimed, ended, stored }: JobEntry): boolean {
  return claimed && !ended && stored !== undefined
}
