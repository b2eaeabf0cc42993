/**
 * Compiles a flow to the execution graph that an engine runs. An engine knows no patterns: every flow becomes nodes, the
 * edges that order them, and for each argument the node that provides it.
 *
 * Every part becomes a segment with one entry and one exit. An atom is its own entry and exit; a linear flow has the entry of
 * its first part and the exit of its last. A **join** connects parallel parts: n tasks after m tasks take n + m edges through
 * a join, not n × m.
 */
import { InvalidArgument } from '../../core/errors.ts'
import { type AnyAtom, listNeeds } from '../atoms/atom.ts'
import { toIsolation } from '../atoms/isolation.ts'
import type { AnyTask } from '../atoms/task.ts'
import { type FlowLink, topologicalOrder } from '../patterns/edges.ts'
import type { AnyFlow, AnyPart } from '../patterns/flow.ts'
import type { AtomNode, DeciderGate, ExecutableAtom, ExecutionGraph, ExecutionNode } from './execution-graph.ts'
import { Scope } from './scope.ts'

const graphCache = new WeakMap<AnyFlow, ExecutionGraph>()

/**
 * Returns the execution graph of a flow. Takes time linear in the number of atoms and edges, once for each flow value.
 *
 * @throws InvalidArgument for a pattern or an atom that this release does not know
 */
export function compile(flow: AnyFlow): ExecutionGraph {
  const known = graphCache.get(flow)
  if (known) return known
  const graph = new Compiler().compile(flow)
  graphCache.set(flow, graph)
  return graph
}

/** A node whose edges are not complete yet. */
interface DraftNode extends ExecutionNode {
  readonly predecessors: DraftNode[]
  readonly successors: DraftNode[]
  readonly gates: DeciderGate[]
}

type DraftAtomNode = DraftNode & AtomNode

/** A part in the graph: its entry, its exit, and the range of its nodes. */
interface Segment<Entry extends DraftNode = DraftNode> {
  readonly entry: Entry
  readonly exit: DraftNode
  readonly first: number
  readonly end: number
}

interface PartPosition {
  readonly scope: Scope<AtomNode> | undefined
  /** The position in its flow. */
  readonly position: number
  readonly retry: AtomNode | undefined
}

class Compiler {
  readonly #nodes: DraftNode[] = []

  compile(flow: AnyFlow): ExecutionGraph {
    this.#flow(flow, { scope: undefined, position: 0, retry: undefined })
    const atoms = this.#nodes.filter(isAtom)
    return { nodes: this.#nodes, atoms, byName: new Map(atoms.map((node) => [node.atom.name, node])) }
  }

  #part(part: AnyPart, place: PartPosition): Segment {
    return part.kind === 'flow' ? this.#flow(part, place) : this.#atom(part, place)
  }

  #atom(atom: AnyAtom, { scope, position, retry }: PartPosition): Segment<DraftAtomNode> {
    if (atom.kind !== 'task' && atom.kind !== 'retry')
      throw unknownPatternError(scope?.flow, `the kind of ${(atom as AnyAtom).name}, ${String((atom as AnyAtom).kind)}`)
    const needs = listNeeds(atom)
    const sources = new Map<string, AtomNode>()
    for (const { name } of needs) {
      const provider = scope?.findProvider(name, position)
      if (provider) sources.set(name, provider)
    }
    const providers = (name: string) => scope?.findProviders(name, position) ?? []
    const isolate = atom.kind === 'task' ? ((atom as AnyTask).isolate ?? scope?.isolate) : undefined
    const isolation = toIsolation(isolate)
    return this.#node({ atom: atom as ExecutableAtom, isolation, retry, scope, needs, sources, providers })
  }

  #join(place: PartPosition & { flow: AnyFlow }): Segment {
    const nowhere = { needs: [], sources: new Map<string, AtomNode>(), providers: () => [] }
    return this.#node({ atom: undefined, retry: place.retry, scope: place.scope, ...nowhere })
  }

  #node<F extends Omit<DraftNode, 'index' | 'predecessors' | 'successors' | 'gates'>>(
    facts: F,
  ): Segment<DraftNode & F> {
    const index = this.#nodes.length
    const node = { ...facts, index, predecessors: [], successors: [], gates: [] }
    this.#nodes.push(node)
    return { entry: node, exit: node, first: index, end: index + 1 }
  }

  #flow(flow: AnyFlow, place: PartPosition): Segment {
    const scope = new Scope<AtomNode>(flow, place.scope && { scope: place.scope, position: place.position })
    const first = this.#nodes.length
    const head = flow.retry && this.#atom(flow.retry, { scope, position: -1, retry: place.retry })
    if (head) scope.retry = head.entry
    const inner = { scope, retry: head ? head.entry : place.retry }
    const pattern: string = flow.pattern
    if (pattern === 'linear') return this.#linear(flow, { ...inner, head, first })
    if (pattern === 'unordered') return this.#parallel(flow, { ...inner, head, first, links: [] })
    if (pattern === 'graph') return this.#parallel(flow, { ...inner, head, first, links: flow.links ?? [] })
    throw unknownPatternError(flow, `the pattern ${pattern}`)
  }

  #linear(flow: AnyFlow, inside: FlowParts): Segment {
    const { scope, retry, head, first } = inside
    let entry: DraftNode | undefined = head?.entry
    let exit = entry
    for (const [position, part] of flow.atoms.entries()) {
      const segment = this.#part(part, { scope, position, retry })
      scope.add(position, part, findNode(part, segment))
      if (exit) connect(exit, segment.entry)
      entry ??= segment.entry
      exit = segment.exit
    }
    if (!entry || !exit) throw new InvalidArgument(`flow ${flow.name} has no tasks`)
    return { entry, exit, first, end: this.#nodes.length }
  }

  #parallel(flow: AnyFlow, { scope, retry, head, first, links }: FlowParts & { links: readonly FlowLink[] }): Segment {
    if (head && flow.atoms.length === 0) return head
    const joined = { flow, scope, position: -1, retry }
    const entry = head?.entry ?? this.#join(joined).entry
    const segments: Segment[] = []
    for (const position of topologicalOrder(flow.atoms.length, links)) {
      const part = flow.atoms[position]
      if (!part) continue
      const segment = this.#part(part, { scope, position, retry })
      scope.add(position, part, findNode(part, segment))
      segments[position] = segment
    }
    for (const link of links) addLink(link, { segments, scope })
    const exit = this.#join(joined).entry
    const [led, leading] = [new Set(links.map(({ to }) => to)), new Set(links.map(({ from }) => from))]
    for (const [position, segment] of segments.entries()) {
      if (!led.has(position)) connect(entry, segment.entry)
      if (!leading.has(position)) connect(segment.exit, exit)
    }
    return { entry, exit, first, end: this.#nodes.length }
  }
}

/** The input for the layout of a flow's parts. */
interface FlowParts {
  readonly scope: Scope<AtomNode>
  readonly retry: AtomNode | undefined
  readonly head: Segment<DraftAtomNode> | undefined
  readonly first: number
}

function addLink(
  { from, to, decider, depth }: FlowLink,
  { segments, scope }: { segments: readonly Segment[]; scope: Scope<AtomNode> },
): void {
  const [before, after] = [segments[from], segments[to]]
  if (!before || !after) return
  connect(before.exit, after.entry)
  if (!decider) return
  const [history, target] = [before, after].map(({ first, end }) => ({ first, end }))
  if (history && target) after.entry.gates.push({ decider, depth, history, target, exit: after.exit, scope })
}

/** Returns the node of a task. A flow has no node of its own. */
function findNode(part: AnyPart, { entry }: Segment): AtomNode | undefined {
  return part.kind === 'task' && isAtom(entry) ? entry : undefined
}

function isAtom(node: DraftNode): node is DraftAtomNode {
  return node.atom !== undefined
}

function connect(from: DraftNode, to: DraftNode): void {
  from.successors.push(to)
  to.predecessors.push(from)
}

/** Returns the error for a flow that a newer copy of the library has made. */
function unknownPatternError(flow: AnyFlow | undefined, what: string): InvalidArgument {
  return new InvalidArgument(`flow ${flow?.name}: this release does not know ${what}`)
}
