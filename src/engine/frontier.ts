/**
 * Which nodes may be worked on next, forwards or backwards.
 *
 * Of each node the frontier knows two things: whether it is **done** (executed, or left out, and meant to stay so) and
 * whether it is **clean** (nothing of it is left to be undone). A node may start when all before it are done, right back to
 * the beginning; it may be undone when all after it are clean, right on to the end. Each node counts how many of its
 * neighbours stand in its way. A change is passed on only as far as it changes something: finishing a node costs as much
 * as it has neighbours, however large the graph.
 *
 * Joins are done and clean by themselves, so they pass on what they hear. A node that comes up may have been overtaken by
 * events: whoever takes it looks at it again.
 */
import type { ExecutionNode } from '../flow/index.ts'

export class ReadyFrontier {
  readonly #nodes: readonly ExecutionNode[]
  /** By the nodes' index: 1 or 0, the node taken for itself. */
  readonly #done: Uint8Array
  readonly #clean: Uint8Array
  /** How many predecessors are not done, or wait for one that is not. */
  readonly #waitsFor: Int32Array
  /** How many successors are not clean, or have one behind them that is not. */
  readonly #blockedBy: Int32Array
  readonly #queue = new PriorityQueue()
  #undone: number

  constructor(nodes: readonly ExecutionNode[]) {
    this.#nodes = nodes
    this.#done = new Uint8Array(nodes.length)
    this.#clean = new Uint8Array(nodes.length).fill(1)
    this.#waitsFor = Int32Array.from(nodes, (node) => node.predecessors.length)
    this.#blockedBy = new Int32Array(nodes.length)
    this.#undone = nodes.length
    for (const node of nodes) {
      if (node.atom === undefined && node.gates.length === 0) this.mark(node, { done: true, clean: true })
      else if (node.predecessors.length === 0) this.consider(node)
    }
  }

  /** How many nodes are not done yet. */
  get undoneCount(): number {
    return this.#undone
  }

  /** Whether all before this node are done. */
  isOpen(node: ExecutionNode): boolean {
    return this.#waitsFor[node.index] === 0
  }

  /** Whether all after this node are clean. */
  isFree(node: ExecutionNode): boolean {
    return this.#blockedBy[node.index] === 0
  }

  /** Whether this node and all after it are clean. */
  isSubtreeClean(node: ExecutionNode): boolean {
    return this.#clean[node.index] === 1 && this.#blockedBy[node.index] === 0
  }

  isDone(node: ExecutionNode): boolean {
    return this.#done[node.index] === 1
  }

  /** Says how a node stands now. */
  mark(node: ExecutionNode, atomStates: { readonly done: boolean; readonly clean: boolean }): void {
    const { index } = node
    if ((this.#done[index] === 1) !== atomStates.done) {
      this.#done[index] = atomStates.done ? 1 : 0
      this.#undone += atomStates.done ? -1 : 1
      if (this.#waitsFor[index] === 0) this.#pass(node, atomStates.done ? -1 : 1)
    }
    if ((this.#clean[index] === 1) !== atomStates.clean) {
      this.#clean[index] = atomStates.clean ? 1 : 0
      if (this.#blockedBy[index] === 0) this.#passBack(node, atomStates.clean ? -1 : 1)
    }
  }

  /** Lets a node come up: something about it has changed that the frontier does not know of. */
  consider(node: ExecutionNode): void {
    this.#queue.add(node)
  }

  /** The next node that may be ready; undefined when there is none until something changes. */
  take(): ExecutionNode | undefined {
    return this.#queue.take()
  }

  /** Tells those after this node, and those behind joins and done nodes, that one thing less or more is in their way. */
  #pass(from: ExecutionNode, change: 1 | -1): void {
    const spreading = [from]
    for (let node = spreading.pop(); node; node = spreading.pop()) {
      for (const { index } of node.successors) {
        const after = this.#nodes[index]
        const before = this.#waitsFor[index] ?? 0
        this.#waitsFor[index] = before + change
        const turned = before === 0 || before + change === 0
        if (!after || !turned) continue
        if (this.#done[index] === 1) spreading.push(after)
        else if (change < 0) this.consider(after)
      }
    }
  }

  #passBack(from: ExecutionNode, change: 1 | -1): void {
    const spreading = [from]
    for (let node = spreading.pop(); node; node = spreading.pop()) {
      for (const { index } of node.predecessors) {
        const behind = this.#nodes[index]
        const before = this.#blockedBy[index] ?? 0
        this.#blockedBy[index] = before + change
        const turned = before === 0 || before + change === 0
        if (!behind || !turned) continue
        if (this.#clean[index] === 1) spreading.push(behind)
        else if (change < 0) this.consider(behind)
      }
    }
  }
}

/** First the greatest priority, and of one priority first who came first. */
class PriorityQueue {
  readonly #lanes = new Map<number, FifoQueue>()
  /** Descending. */
  #priorities: number[] = []

  add(node: ExecutionNode): void {
    const priority = node.atom?.priority ?? 0
    let lane = this.#lanes.get(priority)
    if (!lane) {
      lane = new FifoQueue()
      this.#lanes.set(priority, lane)
      this.#priorities = [...this.#lanes.keys()].sort((a, b) => b - a)
    }
    lane.add(node)
  }

  take(): ExecutionNode | undefined {
    for (const priority of this.#priorities) {
      const node = this.#lanes.get(priority)?.take()
      if (node) return node
    }
    return undefined
  }
}

/** Read from `#next` on: taking from the front of a long array would move the rest each time. */
class FifoQueue {
  #nodes: ExecutionNode[] = []
  #next = 0

  add(node: ExecutionNode): void {
    this.#nodes.push(node)
  }

  take(): ExecutionNode | undefined {
    const node = this.#nodes[this.#next]
    if (node) this.#next += 1
    else if (this.#next > 0) {
      this.#nodes = []
      this.#next = 0
    }
    return node
  }
}
