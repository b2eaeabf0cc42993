/**
 * Says once of each flow that nobody here knows that jobs of it wait. They are left to others, which is right while a new
 * version is rolled out; where there are no others they would wait for ever, and nobody would know why.
 */
import type { Posting } from '../../board/index.ts'
import type { Logger } from '../../core/log.ts'
import type { KnownFlows } from './known-flows.ts'

/** What others post must not fill our memory. */
const MAX_REPORTED_FLOWS = 1_000

export class UnknownFlows {
  readonly #log: Logger
  /** As in `import 1.0`, for the log. */
  readonly #known: readonly string[]
  readonly #reported = new Set<string>()

  constructor(options: { log: Logger; flows: KnownFlows }) {
    this.#log = options.log
    this.#known = Object.entries(options.flows.versions).flatMap(([name, versions]) =>
      versions.map((version) => `${name} ${version}`),
    )
  }

  report({ uuid, details }: Posting): void {
    // Anybody may have written the posting: what is no text is not printed, it may be anything.
    const [flow, version] = [details.flow, details.version].map((name) => (typeof name === 'string' ? name : undefined))
    const key = JSON.stringify([flow, version])
    if (this.#reported.has(key) || this.#reported.size >= MAX_REPORTED_FLOWS) return
    this.#reported.add(key)
    this.#log.warn(
      { job: uuid, flow, version, known: this.#known },
      'jobs of a flow or version that is not known here are left to others: if there are no others, add it to flows',
    )
  }
}
