/** The flows that a conductor can run, by name and version. It runs only flows that were passed in as objects. */

import type { Details } from '../../board/index.ts'
import { Duplicate, InvalidArgument } from '../../core/errors.ts'
import { type AnyFlow, checkStore, isFlow } from '../../flow/index.ts'

export class KnownFlows {
  readonly #byName = new Map<string, AnyFlow[]>()

  /** @throws InvalidArgument for an entry that is not a flow; Duplicate for two flows of one name and version */
  constructor(flows: readonly AnyFlow[]) {
    if (!Array.isArray(flows) || flows.length === 0)
      throw new InvalidArgument('a conductor: flows must be a non-empty list of flows, as in flows: [hello]')
    for (const [index, flow] of flows.entries()) {
      if (!isFlow(flow)) throw new InvalidArgument(`a conductor: flows[${index}] must be a flow, as linear(…) makes it`)
      const versions = this.#byName.get(flow.name) ?? []
      if (versions.some(({ version }) => version === flow.version)) {
        throw new Duplicate(
          `flows: flow ${flow.name} is given twice in version ${flow.version}; give each version once`,
        )
      }
      this.#byName.set(flow.name, [...versions, flow])
    }
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
    return details.flow === undefined ? !board.shared : this.#find(details) !== undefined
  }

  /**
   * Returns the flow to run, and its inputs. @throws MissingDependencies, InvalidArgument when the posting cannot work
   */
  async resolve(details: Details): Promise<{ flow: AnyFlow; store: Readonly<Record<string, unknown>> }> {
    const flow = this.#find(details)
    if (!flow) throw new InvalidArgument('the posting names no flow; post it with the name of one')
    return { flow, store: await checkStore(flow, { ...details.store }) }
  }

  /** Finds the flow. Without a version in the posting, it is the last one given of that name. */
  #find(details: Details): AnyFlow | undefined {
    const versions = this.#byName.get(details.flow ?? '')
    return details.version === undefined
      ? versions?.at(-1)
      : versions?.find(({ version }) => version === details.version)
  }
}
