/**
 * Which node may be worked on next. A frontier goes through an execution graph in one direction: forwards a node is
 * ready when all its predecessors are settled, backwards when all its successors are. It counts what each node still
 * waits for, so that settling a node costs as much as it has neighbours, however large the graph.
 *
 * Every node comes up once. A node that needs no work is settled at once; that keeps the order among its neighbours.
 */
import type { ExecutionGraph, ExecutionNode } from '../flow/index.ts'

export type Direction = 'forwards' | 'backwards'

export class Frontier {
  readonly #direction: Direction
  readonly #waitingFor = new Map<ExecutionNode, number>()
  /** Read from `#next` on: taking from the front of a long array would move the rest each time. */
  readonly #ready: ExecutionNode[] = []
  #next = 0

  constructor(graph: ExecutionGraph, direction: Direction) {
    this.#direction = direction
    for (const node of direction === 'forwards' ? graph.nodes : graph.nodes.toReversed()) {
      const before = direction === 'forwards' ? node.predecessors : node.successors
      if (before.length === 0) this.#ready.push(node)
      else this.#waitingFor.set(node, before.length)
    }
  }

  /** A node that is ready and was not taken yet; undefined when there is none until another is settled. */
  take(): ExecutionNode | undefined {
    const node = this.#ready[this.#next]
    if (node) this.#next += 1
    return node
  }

  /** Says that a node is over and done with. */
  settle(node: ExecutionNode): void {
    for (const after of this.#direction === 'forwards' ? node.successors : node.predecessors) {
      const left = (this.#waitingFor.get(after) ?? 0) - 1
      this.#waitingFor.set(after, left)
      if (left === 0) this.#ready.push(after)
    }
  }
}
