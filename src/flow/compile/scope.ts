/**
 * Who provides a name for an atom. Looked for from the inside out, as in TaskFlow: among the parts that come before it in
 * its own flow, the nearest first, and within a flow among those its last parts first; then the retry of its flow; then
 * around that flow in the same way. Parts that stand side by side do not see each other.
 *
 * Finding a provider takes as many steps as flows lie around the atom, however many parts they have.
 */
import { namesProvided } from '../atoms/atom.ts'
import type { AnyFlow, AnyPart } from '../patterns/flow.ts'
import { listProvidedByPart } from '../patterns/parts.ts'
import type { FlowScope } from './execution-graph.ts'

export class Scope<Node> implements FlowScope {
  readonly flow: AnyFlow
  /** The node of the flow's retry, once there is one. */
  retry: Node | undefined
  readonly #outer: { readonly scope: Scope<Node>; readonly position: number } | undefined
  /** By position: an atom's node, or the scope of a flow. */
  readonly #parts: (Node | Scope<Node>)[] = []
  /** For each name the positions of those that provide it, in the order in which they come. */
  readonly #providers = new Map<string, number[]>()

  constructor(flow: AnyFlow, around: { scope: Scope<Node>; position: number } | undefined) {
    this.flow = flow
    this.#outer = around
    if (around) around.scope.#parts[around.position] = this
  }

  /** Says that a part has its place; those of its flow that come before it have theirs. */
  add(position: number, part: AnyPart, node: Node | undefined): void {
    if (node !== undefined) this.#parts[position] = node
    for (const name of listProvidedByPart(part)) {
      const known = this.#providers.get(name)
      if (known) known.push(position)
      else this.#providers.set(name, [position])
    }
  }

  findProvider(name: string, position: number): Node | undefined {
    for (const provider of this.findProviders(name, position)) return provider
    return undefined
  }

  /** Those that the part at this position sees, the nearest first. */
  *findProviders(name: string, position: number): Iterable<Node> {
    if (position >= 0) {
      yield* this.#visible(name, position)
      if (this.retry !== undefined && namesProvided(this.flow.retry?.provides).includes(name)) yield this.retry
    }
    if (this.#outer) yield* this.#outer.scope.findProviders(name, this.#outer.position)
  }

  *#visible(name: string, position: number): Iterable<Node> {
    if (this.flow.pattern === 'unordered') return
    const positions = this.#providers.get(name) ?? []
    // In a graph whoever provides what somebody needs is alone with it, and linked to them.
    const linear = this.flow.pattern === 'linear'
    for (let at = linear ? lastBelow(positions, position) : positions.length - 1; at >= 0; at -= 1) {
      const found = positions[at] ?? -1
      if (found !== position) yield* this.#inside(name, found)
    }
  }

  /** The providers within a part, the last first. */
  *#inside(name: string, position: number): Iterable<Node> {
    const part = this.#parts[position]
    if (!(part instanceof Scope)) {
      if (part !== undefined) yield part
      return
    }
    for (const found of part.#providers.get(name)?.toReversed() ?? []) yield* part.#inside(name, found)
    if (part.retry !== undefined && namesProvided(part.flow.retry?.provides).includes(name)) yield part.retry
  }
}

/** Where in a growing list the last number below this one is; -1 where there is none. */
function lastBelow(numbers: readonly number[], limit: number): number {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((numbers[middle] ?? 0) < limit) low = middle + 1
    else high = middle
  }
  return low - 1
}
