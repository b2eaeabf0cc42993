/**
 * Warns where a job that runs here posts its successor with its own key: the key is taken until the job is done, so nothing
 * is posted, and what was meant to go on for ever ends.
 */
import type { Logger } from '../../core/log.ts'
import type { JobEntry } from '../model/entry.ts'
import type { Posting } from '../model/posting.ts'

/** For how many jobs it is remembered that they were warned of. */
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

  /** Warns once per job, where the job that has the key is one of the same flow that this board runs. */
  warnIfOwnKey(entry: JobEntry, { key, name, details }: Posting): void {
    const running = entry.stored?.posting
    if (!running || !this.#holdsClaim(entry) || running.name !== name || this.#warned.has(running.uuid)) return
    if (this.#warned.size >= MAX_REMEMBERED_JOBS) this.#warned.clear()
    this.#warned.add(running.uuid)
    const message =
      'nothing was posted: the key is that of a job of the same name which runs here now. If a task posts its own successor, ' +
      'give each one a key of its own, with the time of its run in it; see the guide on recurring jobs'
    this.#log.warn({ job: running.uuid, name, flow: details.flow, key }, message)
  }
}
