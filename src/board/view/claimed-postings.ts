/**
 * The postings of jobs that run in other processes, kept current for callers that hold a `Job`: its run, its attempts, and
 * the last attempt of a trashed job. A claim changes the posting, and a view does not read postings of claimed jobs, because
 * most of them end before a caller reads them.
 *
 * Only jobs that this process references as a `Job` cost a read, and only if they are still claimed a moment later; one read
 * covers all of them. A process without such references reads nothing. (`job-follower.ts` keeps the state of single jobs current.)
 */
import { createDeferred } from '../../core/async/abort.ts'
import type { Backend, StoredJob } from '../contract/index.ts'
import { isHeld, type JobEntry } from '../model/entry.ts'
import { MAX_BATCH, MAX_BATCH_BYTES } from './content-reader.ts'

/** The time for which a job must be claimed before its posting is read. */
const READ_DELAY_MS = 50

export interface ClaimedPostingsOptions {
  readonly backend: Pick<Backend, 'jobs' | 'trash'>
  /** The signal that ends the background work. */
  readonly signal: AbortSignal
  /** Called when the posting of an entry has changed. */
  readonly updated: (entry: JobEntry) => void
}

export class ClaimedPostings {
  readonly #options: ClaimedPostingsOptions
  readonly #claimed = new Set<JobEntry>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: ClaimedPostingsOptions) {
    this.#options = options
  }

  /** Notes that the job was claimed. The postings of this process' own claims are known without a read. */
  noteClaim(entry: JobEntry): void {
    if (entry.isReserved || !isHeld(entry) || this.#options.signal.aborted) return
    this.#claimed.add(entry)
    this.#timer ??= setTimeout(() => this.#look(), READ_DELAY_MS).unref()
  }

  /** Reads the postings of the claimed jobs among the entries, as their claims have written them. Throws the errors of the backend. */
  async read(entries: Iterable<JobEntry>): Promise<void> {
    const claimed = [...entries].filter(isClaimed)
    for (let from = 0; from < claimed.length; ) {
      const part = claimed.slice(from, from + countBatch(claimed.slice(from, from + MAX_BATCH)))
      from += part.length
      const batch = part.map((entry) => ({ entry, changes: entry.changeCount }))
      const contents = await this.#options.backend.jobs.read(batch.map(({ entry }) => entry.id ?? ''))
      batch.forEach(({ entry, changes }, index) => {
        const content = contents[index]
        // If the job was released or changed meanwhile, the view reads it anyway.
        if (content && 'posting' in content && isClaimed(entry) && entry.changeCount === changes)
          this.#keep(entry, content)
      })
    }
  }

  /**
   * Resolves the wait for the job's end. For a job that another process has trashed, its trash entry with the last attempt is read
   * first; if that fails, the wait is resolved without it.
   */
  settleEnd(entry: JobEntry, end: 'COMPLETE' | 'TRASHED'): void {
    if (end === 'TRASHED' && !entry.settledPosting && entry.id !== undefined && isHeld(entry)) {
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
    // An error is ignored: the reconnect is a gap, after which all postings are read.
    this.read(entries).catch(() => undefined)
  }

  #keep(entry: JobEntry, content: StoredJob): void {
    const { stored } = entry
    if (stored && stored.revision > content.revision) return
    entry.stored = content
    this.#options.updated(entry)
  }

  async #lookInTrash(entry: JobEntry, id: string): Promise<void> {
    const found = await this.#options.backend.trash.entry(id).catch(() => undefined)
    if (found) entry.settledPosting = found.posting
    entry.endDeferred?.resolve('TRASHED')
  }
}

/** Returns how many of the jobs fit into one read; at least one. */
function countBatch(entries: readonly JobEntry[]): number {
  let bytes = 0
  const tooMany = entries.findIndex(({ stored }, index) => {
    bytes += stored?.bytes ?? 0
    return index > 0 && bytes > MAX_BATCH_BYTES
  })
  return tooMany === -1 ? entries.length : tooMany
}

function isClaimed({ claimed, ended, stored }: JobEntry): boolean {
  return claimed && !ended && stored !== undefined
}
