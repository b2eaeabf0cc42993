/**
 * Where every node stands: its record in the ledger, and what the frontier makes of it. The one place that says what may
 * be done with a node.
 *
 * | to do     | state                        | intention | when                                                     |
 * |-----------|------------------------------|-----------|----------------------------------------------------------|
 * | `execute` | PENDING; RUNNING if resumed  | EXECUTE   | all before it are done                                   |
 * | `revert`  | anything that leaves traces  | REVERT    | all after it are clean                                   |
 * | `retry`   | SUCCESS, RETRYING (a retry)  | RETRY     | all after it are clean, and all before it still done     |
 * | `decide`  | (a join with deciders)       |           | all before it are done, and nobody has decided yet       |
 *
 * Done is what is SUCCESS and to be EXECUTEd, or IGNORE. Clean is what is PENDING, REVERTED, or IGNORE.
 */
import type { AtomState, Intention } from '../core/states.ts'
import type { AtomNode, ExecutionGraph, ExecutionNode } from '../flow/index.ts'
import type { AtomDetail } from '../persistence/index.ts'
import { ReadyFrontier } from './frontier.ts'
import type { Ledger } from './ledger.ts'

export type AtomAction = 'execute' | 'revert' | 'retry' | 'decide'

const CLEAN_STATES: ReadonlySet<AtomState> = new Set(['PENDING', 'REVERTED', 'IGNORE'])

export class AtomStates {
  readonly graph: ExecutionGraph
  readonly ledger: Ledger
  readonly frontier: ReadyFrontier
  /** Whether searches have to look behind nodes that nothing was done with: atoms may have been added. */
  readonly #searchesDeep: boolean

  /** Every atom of the graph is in the ledger. */
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

  /** What may be done with this node now, if anything. */
  nextAction(node: ExecutionNode): AtomAction | undefined {
    if (!isAtom(node)) return !this.frontier.isDone(node) && this.frontier.isOpen(node) ? 'decide' : undefined
    const { state, intention } = this.record(node)
    switch (intention) {
      case 'EXECUTE':
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

  /** Back to a clean record. */
  renew(node: AtomNode): void {
    this.ledger.restart(node.atom.name)
    this.#mark(node, this.record(node))
    this.frontier.consider(node)
  }

  /** Unless it was begun. Who has decided is noted, each by the first atom that it decided about. */
  ignore(node: AtomNode, by: string): void {
    const { state } = this.record(node)
    if (state !== 'PENDING' && state !== 'IGNORE') return
    this.ledger.annotate(node.atom.name, { meta: { leftOutBy: [...this.#ignoredBy(node), by] } })
    if (state === 'IGNORE') return
    this.ledger.intend(node.atom.name, 'IGNORE')
    this.moveTo(node, 'IGNORE')
  }

  /** What comes after a retry and has left traces is to be undone, last things first. */
  revertAfter(retry: AtomNode): void {
    const touched = this.#after(retry, (node) => !this.frontier.isSubtreeClean(node))
    for (const node of touched)
      if (isAtom(node) && !CLEAN_STATES.has(this.record(node).state)) this.intend(node, 'REVERT')
    for (const node of touched.reverse()) this.frontier.consider(node)
  }

  /** Everything is to be undone, and nothing that was not begun is to begin: each atom's record says so. */
  revertAll(): void {
    for (const node of this.graph.atoms) {
      const { state } = this.record(node)
      if (!CLEAN_STATES.has(state) || state === 'PENDING') this.intend(node, 'REVERT')
    }
    for (const node of this.graph.atoms.toReversed()) this.frontier.consider(node)
  }

  /**
   * What comes after a retry begins anew, as if nothing had been done with it; except for what deciders have left out that
   * do not come after it: nobody asks those again.
   */
  renewAfter(retry: AtomNode): void {
    const after = this.#after(retry, (node) => this.#hasBegun(node))
    const names = new Set(after.flatMap(({ atom }) => atom?.name ?? []))
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

  /** All nodes after this one that can be reached through such nodes, in no particular order. */
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

  /** Where something in a flow was begun, whoever decides about the flow has said yes. */
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
