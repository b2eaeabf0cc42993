/**
 * Warns once about each flow or version that is unknown here and has jobs waiting. The jobs are left to other
 * conductors, which is right during the roll-out of a new version; without other conductors they would wait forever,
 * and the cause would not be visible.
 */
import type { Posting } from '../../board/index.ts'
import type { Logger } from '../../core/log.ts'
import type { KnownFlows } from './known-flows.ts'

/** The limit of reported flows: postings of other processes must not fill this process's memory. */
const MAX_REPORTED_FLOWS = 1_000

export class UnknownFlows {
  readonly #log: Logger
  /** The known flows for the log, as in `import 1.0`. */
  readonly #known: readonly string[]
  readonly #reported = new Set<string>()

  constructor(options: { log: Logger; flows: KnownFlows }) {
    this.#log = options.log
    this.#known = Object.entries(options.flows.versions).flatMap(([name, versions]) =>
      versions.map((version) => `${name} ${version}`),
    )
  }

  report({ uuid, details }: Posting): void {
    // Any process may have written the posting: a value that is not a string is not logged.
    const [flow, version] = [details.flow, details.version].map((name) => (typeof name === 'string' ? name : undefined))
    const key = JSON.stringify([flow, version])
    if (this.#reported.has(key) || this.#reported.size >= MAX_REPORTED_FLOWS) return
    this.#reported.add(key)
    this.#log.warn(
      { job: uuid, flow, version, known: this.#known },
      'jobs of an unknown flow or version are left to other conductors; if there are none, add the flow to flows',
    )
  }
}
