/**
 * Warns when a job that runs here posts its successor with its own key: the key is taken until the job is done, so nothing
 * is posted, and the chain of recurring jobs ends.
 */
import type { Logger } from '../../../core/log.ts'
import type { JobEntry } from '../../model/entry.ts'
import type { Posting } from '../../model/posting/posting.ts'

/** The maximum number of remembered jobs for which a warning was logged. */
const MAX_REMEMBERED_JOBS = 1_000

export class OwnKeyWarning {
  readonly #log: Logger
  /** Whether this board holds the claim of the job. */
  readonly #holdsClaim: (entry: JobEntry) => boolean
  readonly #warned = new Set<string>()

  constructor(options: { readonly log: Logger; readonly holds: (entry: JobEntry) => boolean }) {
    this.#log = options.log
    this.#holdsClaim = options.holds
  }

  /** Warns once per job, if the job that has the key has the same name and this board runs it. */
  warnIfOwnKey(entry: JobEntry, { key, name, details }: Posting): void {
    const running = entry.stored?.posting
    if (!running || !this.#holdsClaim(entry) || running.name !== name || this.#warned.has(running.uuid)) return
    if (this.#warned.size >= MAX_REMEMBERED_JOBS) this.#warned.clear()
    this.#warned.add(running.uuid)
    const message =
      'nothing was posted: a job of the same name, which this process runs now, has the key. If a task posts its own successor, ' +
      'use a different key for each one, such as one with the time of its run; see the guide on recurring jobs'
    this.#log.warn({ job: running.uuid, name, flow: details.flow, key }, message)
  }
}
