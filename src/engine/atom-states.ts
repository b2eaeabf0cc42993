/**
 * The state of every node: its record in the ledger, and its marks in the frontier. Only this file decides which action is
 * possible on a node.
 *
 * | to do     | state                        | intention | when                                                     |
 * |-----------|------------------------------|-----------|----------------------------------------------------------|
 * | `execute` | PENDING; RUNNING if resumed  | EXECUTE   | all before it are done                                   |
 * | `revert`  | anything that leaves traces  | REVERT    | all after it are clean                                   |
 * | `revert`  | REVERTING                    | EXECUTE   | it was interrupted: it is undone, and executed again     |
 * | `retry`   | SUCCESS, RETRYING (a retry)  | RETRY     | all after it are clean, and all before it still done     |
 * | `decide`  | (a join with deciders)       |           | all before it are done, and nothing is decided yet       |
 *
 * A node is done if it is SUCCESS with the intention EXECUTE, or IGNORE. It is clean if it is PENDING, REVERTED, or IGNORE.
 */
import type { AtomState, Intention } from '../core/states.ts'
import type { AtomNode, ExecutionGraph, ExecutionNode } from '../flow/index.ts'
import type { AtomDetail } from '../persistence/index.ts'
import { dropStaleCheckpoints } from './checkpoints.ts'
import { ReadyFrontier } from './frontier.ts'
import type { Ledger } from './ledger.ts'

export type AtomAction = 'execute' | 'revert' | 'retry' | 'decide'

const CLEAN_STATES: ReadonlySet<AtomState> = new Set(['PENDING', 'REVERTED', 'IGNORE'])

export class AtomStates {
  readonly graph: ExecutionGraph
  readonly ledger: Ledger
  readonly frontier: ReadyFrontier
  /** Whether searches continue behind nodes that were not begun: atoms may have been added to the flow. */
  readonly #searchesDeep: boolean

  /** @param options.ledger has every atom of the graph */
  constructor(options: { graph: ExecutionGraph; ledger: Ledger; thorough: boolean }) {
    const { graph, ledger, thorough } = options
    this.graph = graph
    this.ledger = ledger
    this.#searchesDeep = thorough
    this.frontier = new ReadyFrontier(graph.nodes)
    for (const node of graph.nodes) {
      if (isAtom(node)) this.#mark(node, this.record(node))
      else if (this.#isDecided(node)) this.frontier.mark(node, { done: true, clean: true })
    }
    for (const node of graph.atoms) if (this.record(node).state !== 'PENDING') this.frontier.consider(node)
  }

  record(node: AtomNode): AtomDetail {
    return this.ledger.atom(node.atom.name)
  }

  /** Returns the action that is possible on this node now, if any. */
  nextAction(node: ExecutionNode): AtomAction | undefined {
    if (!isAtom(node)) return !this.frontier.isDone(node) && this.frontier.isOpen(node) ? 'decide' : undefined
    const { state, intention } = this.record(node)
    switch (intention) {
      case 'EXECUTE':
        if (state === 'REVERTING') return 'revert'
        return (state === 'PENDING' || state === 'RUNNING') && this.frontier.isOpen(node) ? 'execute' : undefined
      case 'RETRY':
        return this.frontier.isFree(node) && this.frontier.isOpen(node) ? 'retry' : undefined
      case 'REVERT':
        return !CLEAN_STATES.has(state) && state !== 'REVERT_FAILURE' && this.frontier.isFree(node)
          ? 'revert'
          : undefined
      case 'IGNORE':
        return undefined
    }
  }

  /** @throws InvalidState when the atom cannot go this way */
  moveTo(node: AtomNode, to: AtomState, outcome?: Parameters<Ledger['moveAtom']>[2]): void {
    this.#mark(node, this.ledger.moveAtom(node.atom.name, to, outcome))
  }

  intend(node: AtomNode, intention: Intention): void {
    this.ledger.intend(node.atom.name, intention)
    this.#mark(node, this.record(node))
  }

  /** Replaces the record of an atom by a clean one. */
  renew(node: AtomNode): void {
    this.ledger.restart(node.atom.name)
    this.#mark(node, this.record(node))
    this.frontier.consider(node)
  }

  /** Leaves an atom out, unless it was begun. Records each decider by the first atom of its target. */
  ignore(node: AtomNode, by: string): void {
    const { state } = this.record(node)
    if (state !== 'PENDING' && state !== 'IGNORE') return
    this.ledger.annotate(node.atom.name, { meta: { leftOutBy: [...this.#ignoredBy(node), by] } })
    if (state === 'IGNORE') return
    this.ledger.intend(node.atom.name, 'IGNORE')
    this.moveTo(node, 'IGNORE')
  }

  /** Marks all atoms after a retry that are not clean for revert, in reverse order. */
  revertAfter(retry: AtomNode): void {
    const touched = this.#after(retry, (node) => !this.frontier.isSubtreeClean(node))
    for (const node of touched)
      if (isAtom(node) && !CLEAN_STATES.has(this.record(node).state)) this.intend(node, 'REVERT')
    for (const node of touched.reverse()) this.frontier.consider(node)
  }

  /** Marks every atom for revert, in its record; atoms that were not begun do not begin any more. */
  revertAll(): void {
    for (const node of this.graph.atoms) {
      const { state } = this.record(node)
      if (!CLEAN_STATES.has(state) || state === 'PENDING') this.intend(node, 'REVERT')
    }
    for (const node of this.graph.atoms.toReversed()) this.frontier.consider(node)
  }

  /**
   * Renews all atoms after a retry, as if they had not been begun. An atom stays left out if a decider that is not after the
   * retry has left it out: that decider is not asked again.
   */
  renewAfter(retry: AtomNode): void {
    const after = this.#after(retry, (node) => this.#hasBegun(node))
    const names = new Set(after.flatMap(({ atom }) => atom?.name ?? []))
    dropStaleCheckpoints(this.ledger, after, { retry })
    for (const node of after.filter(isAtom)) {
      const leftOutBy = this.#ignoredBy(node).filter((name) => !names.has(name))
      if (leftOutBy.length === 0) this.renew(node)
      else this.ledger.annotate(node.atom.name, { meta: { leftOutBy } })
    }
    for (const node of after)
      if (!isAtom(node) && node.gates.length > 0) this.frontier.mark(node, { done: this.#isDecided(node), clean: true })
  }

  #ignoredBy(node: AtomNode): readonly string[] {
    const { leftOutBy } = this.record(node).meta
    return Array.isArray(leftOutBy) ? leftOutBy : []
  }

  /** Returns all nodes after this one, in no particular order. */
  nodesAfter(node: ExecutionNode): ExecutionNode[] {
    return this.#after(node, () => true)
  }

  #after(from: ExecutionNode, isMet: (node: ExecutionNode) => boolean): ExecutionNode[] {
    const found = new Set<ExecutionNode>()
    const left = [from]
    for (let node = left.pop(); node; node = left.pop()) {
      for (const after of node.successors) {
        if (found.has(after) || !(this.#searchesDeep || isMet(after))) continue
        found.add(after)
        left.push(after)
      }
    }
    return [...found]
  }

  #hasBegun(node: ExecutionNode): boolean {
    if (!isAtom(node)) return true
    const { state, intention } = this.record(node)
    return state !== 'PENDING' || intention !== 'EXECUTE'
  }

  /** Returns whether the deciders of a join have said yes: then an atom in their target was begun. */
  #isDecided(join: ExecutionNode): boolean {
    return join.gates.every(({ target }) => {
      const inside = this.graph.nodes.slice(target.first, target.end)
      return inside.some((node) => isAtom(node) && this.record(node).state !== 'PENDING')
    })
  }

  #mark(node: AtomNode, { state, intention }: AtomDetail): void {
    const done = state === 'IGNORE' || (state === 'SUCCESS' && intention === 'EXECUTE')
    this.frontier.mark(node, { done, clean: CLEAN_STATES.has(state) })
  }
}

export function isAtom(node: ExecutionNode): node is AtomNode {
  return node.atom !== undefined
}
