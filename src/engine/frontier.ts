/**
 * Finds the nodes that may be executed or reverted next.
 *
 * For each node, the frontier knows two marks: whether it is **done** (executed or left out, and meant to stay so) and
 * whether it is **clean** (nothing of it has to be undone). A node may start when all nodes before it are done, back to the
 * first; it may be undone when all nodes after it are clean, to the last. Each node counts the neighbours that block it. A
 * change spreads only as far as it changes a count to or from zero: finishing a node costs as much as it has neighbours,
 * whatever the size of the graph.
 *
 * Joins are always done and clean, so they only pass changes on. The state of a node may have changed since it was queued:
 * the caller of `take` checks it again.
 */
import { FifoQueue } from '../core/collections/fifo.ts'
import type { ExecutionNode } from '../flow/index.ts'

export class ReadyFrontier {
  readonly #nodes: readonly ExecutionNode[]
  /** The marks by the nodes' index; each for the node alone. */
  readonly #done: boolean[]
  readonly #clean: boolean[]
  /** The number of predecessors that are not done, or wait for a predecessor that is not done. */
  readonly #waitsFor: number[]
  /** The number of successors that are not clean, or are blocked by a successor that is not clean. */
  readonly #blockedBy: number[]
  readonly #queue = new PriorityQueue()
  #undone: number

  constructor(nodes: readonly ExecutionNode[]) {
    this.#nodes = nodes
    // Plain arrays: a typed array takes three objects, which cost more memory than the few marks of most flows.
    this.#done = nodes.map(() => false)
    this.#clean = nodes.map(() => true)
    this.#waitsFor = nodes.map((node) => node.predecessors.length)
    this.#blockedBy = nodes.map(() => 0)
    this.#undone = nodes.length
    for (const node of nodes) {
      if (node.atom === undefined && node.gates.length === 0) this.mark(node, { done: true, clean: true })
      else if (node.predecessors.length === 0) this.consider(node)
    }
  }

  /** The number of nodes that are not done yet. */
  get undoneCount(): number {
    return this.#undone
  }

  /** Returns whether all before this node are done. */
  isOpen(node: ExecutionNode): boolean {
    return this.#waitsFor[node.index] === 0
  }

  /** Returns whether all after this node are clean. */
  isFree(node: ExecutionNode): boolean {
    return this.#blockedBy[node.index] === 0
  }

  /** Returns whether this node and all after it are clean. */
  isSubtreeClean(node: ExecutionNode): boolean {
    return this.#clean[node.index] === true && this.#blockedBy[node.index] === 0
  }

  isDone(node: ExecutionNode): boolean {
    return this.#done[node.index] === true
  }

  /** Sets the marks of a node. */
  mark(node: ExecutionNode, atomStates: { readonly done: boolean; readonly clean: boolean }): void {
    const { index } = node
    if (this.#done[index] !== atomStates.done) {
      this.#done[index] = atomStates.done
      this.#undone += atomStates.done ? -1 : 1
      if (this.#waitsFor[index] === 0) this.#pass(node, atomStates.done ? -1 : 1)
    }
    if (this.#clean[index] !== atomStates.clean) {
      this.#clean[index] = atomStates.clean
      if (this.#blockedBy[index] === 0) this.#passBack(node, atomStates.clean ? -1 : 1)
    }
  }

  /** Queues a node, because something has changed about it that the frontier does not know. */
  consider(node: ExecutionNode): void {
    this.#queue.add(node)
  }

  /** Returns the next node that may be ready; undefined if there is none until something changes. */
  take(): ExecutionNode | undefined {
    return this.#queue.take()
  }

  /** Changes the count of blockers of the nodes after this one, and of the nodes behind joins and done nodes. */
  #pass(from: ExecutionNode, change: 1 | -1): void {
    const spreading = [from]
    for (let node = spreading.pop(); node; node = spreading.pop()) {
      for (const { index } of node.successors) {
        const after = this.#nodes[index]
        const before = this.#waitsFor[index] ?? 0
        this.#waitsFor[index] = before + change
        const turned = before === 0 || before + change === 0
        if (!after || !turned) continue
        if (this.#done[index]) spreading.push(after)
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
        if (this.#clean[index]) spreading.push(behind)
        else if (change < 0) this.consider(behind)
      }
    }
  }
}

/** A queue by priority, the greatest first; nodes of the same priority are taken in the order of arrival. */
class PriorityQueue {
  /** The nodes of each priority, descending. Most flows have one priority, so a list is searched faster than a map. */
  readonly #lanes: { readonly priority: number; readonly nodes: FifoQueue<ExecutionNode> }[] = []

  add(node: ExecutionNode): void {
    const priority = node.atom?.priority ?? 0
    this.#queueOf(priority).push(node)
  }

  take(): ExecutionNode | undefined {
    for (const { nodes } of this.#lanes) {
      const node = nodes.shift()
      if (node) return node
    }
    return undefined
  }

  /** Returns the queue of a priority; a new one where there is none. */
  #queueOf(priority: number): FifoQueue<ExecutionNode> {
    const known = this.#lanes.find((lane) => lane.priority === priority)
    if (known) return known.nodes
    const nodes = new FifoQueue<ExecutionNode>()
    this.#lanes.push({ priority, nodes })
    this.#lanes.sort((a, b) => b.priority - a.priority)
    return nodes
  }
}
