/**
 * Finds the providers of a name for an atom. The search goes from the inside out, as in TaskFlow: first the parts before the
 * atom in its own flow, the nearest first, and within a flow among them its last parts first; then the retry of its flow; then
 * around that flow in the same way. Parallel parts do not see each other.
 *
 * Finding a provider takes as many steps as flows enclose the atom, however many parts they have.
 */
import { namesProvided } from '../atoms/atom.ts'
import type { Isolate } from '../atoms/isolation.ts'
import type { AnyFlow, AnyPart } from '../patterns/flow.ts'
import { listProvidedByPart } from '../patterns/parts.ts'
import type { FlowScope } from './execution-graph.ts'

export class Scope<Node> implements FlowScope {
  readonly flow: AnyFlow
  /** The node of the flow's retry, once it is made. */
  retry: Node | undefined
  readonly #outer: { readonly scope: Scope<Node>; readonly position: number } | undefined
  /** The parts by position: an atom's node, or the scope of a flow. */
  readonly #parts: (Node | Scope<Node>)[] = []
  /** The positions of the parts that provide each name, in ascending order. */
  readonly #providers = new Map<string, number[]>()

  constructor(flow: AnyFlow, around: { scope: Scope<Node>; position: number } | undefined) {
    this.flow = flow
    this.#outer = around
    if (around) around.scope.#parts[around.position] = this
  }

  /** Whether the tasks of the flow run in child processes, as it or the nearest outer flow says. */
  get isolate(): Isolate | undefined {
    return this.flow.isolate ?? this.#outer?.scope.isolate
  }

  /** Adds a part at its position. Parts that come before it in the flow's order must have been added. */
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

  /** Yields the providers that the part at this position sees, the nearest first. */
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
    // In a graph a required name has exactly one provider, and an edge from it.
    const linear = this.flow.pattern === 'linear'
    for (let at = linear ? lastBelow(positions, position) : positions.length - 1; at >= 0; at -= 1) {
      const found = positions[at] ?? -1
      if (found !== position) yield* this.#inside(name, found)
    }
  }

  /** Yields the providers within a part, the last first. */
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

/** Returns the index of the last number below `limit` in an ascending list; -1 if there is none. */
function lastBelow(numbers: readonly number[], limit: number): number {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((numbers[middle] ?? 0) < limit) low = middle + 1
    else high = middle
  }
  return low - 1
}
