/** The flows that a conductor can run, by name and version. It runs only flows that were passed in as objects. */

import type { Details, Posting } from '../../board/index.ts'
import { assertFixedPosting } from '../../board/internal.ts'
import { Duplicate, InvalidArgument } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { type AnyFlow, checkStore, isFlow } from '../../flow/index.ts'

export class KnownFlows {
  readonly #byName = new Map<string, AnyFlow[]>()

  /** @throws InvalidArgument for an entry that is not a flow, or that declares an invalid posting; Duplicate for two flows of one name and version */
  constructor(flows: readonly AnyFlow[]) {
    if (!Array.isArray(flows) || flows.length === 0)
      throw new InvalidArgument('a conductor: flows must be a non-empty list of flows, as in flows: [hello]')
    for (const [index, flow] of flows.entries()) {
      if (!isFlow(flow)) throw new InvalidArgument(`a conductor: flows[${index}] must be a flow, as linear(…) makes it`)
      assertFixedPosting(flow)
      const versions = this.#byName.get(flow.name) ?? []
      if (versions.some(({ version }) => version === flow.version)) {
        throw new Duplicate(
          `flows: flow ${flow.name} is given twice in version ${flow.version}; give each version once`,
        )
      }
      this.#byName.set(flow.name, [...versions, flow])
    }
  }

  get all(): AnyFlow[] {
    return [...this.#byName.values()].flat()
  }

  get names(): string[] {
    return [...this.#byName.keys()]
  }

  /** The versions of each flow, by name. */
  get versions(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries([...this.#byName].map(([name, flows]) => [name, flows.map(({ version }) => version)]))
  }

  /**
   * Returns whether a job can be run here. A posting without a flow is accepted, because any conductor can only trash
   * it with a reason. On a shared board it is left to TaskFlow, which keeps the names of flows in its logbooks.
   */
  accepts(details: Details, board: { readonly shared: boolean }): boolean {
    return details.flow === undefined ? !board.shared : this.find(details) !== undefined
  }

  /**
   * Returns the flow to run, and its inputs. @throws MissingDependencies, InvalidArgument when the posting cannot work
   */
  async resolve(details: Details): Promise<{ flow: AnyFlow; store: Readonly<Record<string, unknown>> }> {
    const flow = this.find(details)
    if (!flow) throw new InvalidArgument('the posting names no flow; post it with the name of one')
    const { store = {} } = details
    // A schema is user code, which may change what it is given; without one, `checkStore` makes a copy.
    return { flow, store: await checkStore(flow, flow.schema ? { ...store } : store) }
  }

  /** Finds the flow. Without a version in the posting, it is the last one given of that name. */
  find(details: Details): AnyFlow | undefined {
    const versions = this.#byName.get(details.flow ?? '')
    return details.version === undefined
      ? versions?.at(-1)
      : versions?.find(({ version }) => version === details.version)
  }
}

/** The limit of reported flows: postings of other processes must not fill this process's memory. */
const MAX_REPORTED_FLOWS = 1_000

/**
 * Warns once about each flow or version that is unknown here and has jobs waiting. The jobs are left to other
 * conductors, which is right during the roll-out of a new version; without other conductors they would wait forever,
 * and the cause would not be visible.
 */
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
