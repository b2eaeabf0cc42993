/**
 * Looks for jobs that stay on a busy board, while this process receives no changes of it.
 *
 * Most jobs of a busy board are claimed soon after their post, by others. So a posting is read only when two looks in a row have found
 * its job unclaimed, and a posting that is not accepted is not read again.
 */
import type { Backend } from '../backend.ts'
import type { ClaimOrderKey } from '../model/claim-order.ts'
import type { Posting } from '../model/posting.ts'
import { dueTime } from '../queue/queue.ts'

/** The number of jobs in one read of a board that is read in parts. */
const JOBS_PER_PART = 1_000
/** The number of postings in one read. */
const POSTINGS_PER_READ = 256

export interface IdlePollOptions {
  readonly backend: Pick<Backend, 'listUnclaimed' | 'sections' | 'read' | 'now'>
  readonly accepts: (posting: Posting) => boolean
  /** The ids of jobs that are not accepted. */
  readonly rejected: Iterable<string>
}

export class IdlePoll {
  readonly #options: IdlePollOptions
  /** The unclaimed jobs that the last look has found. */
  #found: ReadonlySet<string> = new Set()
  #rejected: ReadonlySet<string>
  /** The due times of accepted jobs that are delayed, in milliseconds on the backend's clock. */
  readonly #delayed = new Map<string, number>()

  constructor(options: IdlePollOptions) {
    this.#options = options
    this.#rejected = new Set(options.rejected)
  }

  /** Returns whether jobs of this board can be found in this way. */
  static isPossible({ listUnclaimed, sections }: Pick<Backend, 'listUnclaimed' | 'sections'>): boolean {
    return listUnclaimed !== undefined || sections !== undefined
  }

  /** Returns whether there is an accepted job that is due, and that the look before has found, too. @throws NotConnected */
  async look(): Promise<boolean> {
    const { backend } = this.#options
    const before = this.#found
    const found = new Set(await this.#listUnclaimed())
    this.#found = found
    this.#rejected = new Set([...this.#rejected].filter((id) => found.has(id)))
    const toRead: string[] = []
    for (const id of found) {
      const dueAt = this.#delayed.get(id)
      if (dueAt !== undefined && dueAt <= backend.now()) return true
      if (before.has(id) && !this.#rejected.has(id) && dueAt === undefined) toRead.push(id)
    }
    for (const id of this.#delayed.keys()) if (!found.has(id)) this.#delayed.delete(id)
    return this.#readUntilAccepted(toRead)
  }

  async #listUnclaimed(): Promise<readonly string[]> {
    const { sections, listUnclaimed } = this.#options.backend
    if (!sections) return (await listUnclaimed?.call(this.#options.backend)) ?? []
    const ids: string[] = []
    let after: ClaimOrderKey | undefined
    while (true) {
      const { jobs, end } = await sections.range({ after, limit: JOBS_PER_PART, due: true })
      for (const { id } of jobs) ids.push(id)
      after = jobs.at(-1)
      if (end || !after) return ids
    }
  }

  async #readUntilAccepted(ids: readonly string[]): Promise<boolean> {
    const { backend, accepts } = this.#options
    const rejected = new Set(this.#rejected)
    this.#rejected = rejected
    for (let from = 0; from < ids.length; from += POSTINGS_PER_READ) {
      const part = ids.slice(from, from + POSTINGS_PER_READ)
      const read = await backend.read(part)
      for (const [index, id] of part.entries()) {
        const job = read[index]
        if (!job) continue
        if ('error' in job || !accepts(job.posting)) rejected.add(id)
        else if (dueTime(job) > backend.now()) this.#delayed.set(id, dueTime(job))
        else return true
      }
    }
    return false
  }
}
