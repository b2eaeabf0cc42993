/** The flows that a conductor can run, by name and version. Nothing is run that was not given here by value. */

import type { Details } from '../../board/index.ts'
import { Duplicate, InvalidArgument } from '../../core/errors.ts'
import { type AnyFlow, checkStore, isFlow } from '../../flow/index.ts'

export class KnownFlows {
  readonly #byName = new Map<string, AnyFlow[]>()

  /** @throws InvalidArgument for what is no flow, Duplicate for two of one name and version */
  constructor(flows: readonly AnyFlow[]) {
    if (!Array.isArray(flows) || flows.length === 0)
      throw new InvalidArgument('a conductor: flows has to be a list of what it can run, as in flows: [hello]')
    for (const [index, flow] of flows.entries()) {
      if (!isFlow(flow))
        throw new InvalidArgument(`a conductor: number ${index + 1} in flows is no flow, as linear(…) makes them`)
      const versions = this.#byName.get(flow.name) ?? []
      if (versions.some(({ version }) => version === flow.version)) {
        throw new Duplicate(`flow ${flow.name} is there twice in version ${flow.version}`)
      }
      this.#byName.set(flow.name, [...versions, flow])
    }
  }

  get names(): string[] {
    return [...this.#byName.keys()]
  }

  /** By name. */
  get versions(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries([...this.#byName].map(([name, flows]) => [name, flows.map(({ version }) => version)]))
  }

  /**
   * A posting that names no flow is accepted, because nobody else could do more with it than say so; but on a board that
   * is shared it is for TaskFlow, which names flows in its logbooks.
   */
  accepts(details: Details, board: { readonly shared: boolean }): boolean {
    return details.flow === undefined ? !board.shared : this.#find(details) !== undefined
  }

  /** The flow to run, and its inputs. @throws MissingDependencies, InvalidArgument when the posting cannot work */
  async resolve(details: Details): Promise<{ flow: AnyFlow; store: Readonly<Record<string, unknown>> }> {
    const flow = this.#find(details)
    if (!flow) throw new InvalidArgument('the posting names no flow; post it with the name of one')
    return { flow, store: await checkStore(flow, { ...details.store }) }
  }

  /** Without a version in the posting, the flow that was given last. */
  #find(details: Details): AnyFlow | undefined {
    const versions = this.#byName.get(details.flow ?? '')
    return details.version === undefined
      ? versions?.at(-1)
      : versions?.find(({ version }) => version === details.version)
  }
}
