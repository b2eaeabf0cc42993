/**
 * Deciders are asked before a node may start; if one says no, a part of the flow is left out.
 *
 * A decider whose predecessors were all left out is not asked. A single no is enough; of several, the one with the greatest
 * depth counts.
 */
import { InvalidArgument } from '../core/errors.ts'
import type { AtomNode, DeciderGate, Depth, ExecutionNode, NodeRange } from '../flow/index.ts'
import { type AtomStates, isAtom } from './atom-states.ts'

/** The depths, in the order of how much they leave out: the least first. */
const DEPTHS: readonly Depth[] = ['ATOM', 'NEIGHBORS', 'FLOW', 'ALL']

/**
 * Asks the deciders of a ready node, and leaves out what they refuse. Returns whether the node starts.
 *
 * @throws what a decider throws
 */
export function passesGates(node: ExecutionNode, atomStates: AtomStates): boolean {
  const refusing = node.gates.filter((gate) => isRefused(gate, atomStates))
  const reach = Math.max(...refusing.map(({ depth }) => DEPTHS.indexOf(depth)))
  for (const gate of refusing) if (DEPTHS.indexOf(gate.depth) === reach) leaveOut(gate, atomStates)
  return refusing.length === 0
}

function isRefused({ decider, history }: DeciderGate, atomStates: AtomStates): boolean {
  const known = atomsInRange(history, atomStates).filter((node) => atomStates.record(node).state === 'SUCCESS')
  if (known.length === 0) return false
  const results = known.map((node): [string, unknown] => [node.atom.name, atomStates.record(node).result])
  const answer: unknown = decider(Object.fromEntries(results))
  // A promise would always count as yes.
  if (typeof Object(answer)['then'] === 'function')
    throw new InvalidArgument('a decider must return true or false; this one is async and returned a promise')
  return !answer
}

function leaveOut(gate: DeciderGate, atomStates: AtomStates): void {
  const { first, end } = gate.target
  const target = atomStates.graph.nodes.slice(first, end)
  const by = target.find(isAtom)?.atom.name ?? ''
  for (const node of [...target, ...furtherSkipped(gate, atomStates)]) {
    if (isAtom(node)) atomStates.ignore(node, by)
    else atomStates.frontier.mark(node, { done: true, clean: true })
  }
}

/** Returns the nodes that are left out in addition to the target. */
function furtherSkipped({ depth, exit, scope }: DeciderGate, atomStates: AtomStates): ExecutionNode[] {
  const isNear = (node: ExecutionNode) => isAtom(node) && node.atom.kind === 'task' && node.scope === scope
  switch (depth) {
    case 'ALL':
      return atomStates.nodesAfter(exit)
    case 'FLOW':
      return [...reachable(exit, isNear)]
    case 'NEIGHBORS':
      return exit.successors.filter(isNear)
    case 'ATOM':
      return []
  }
}

function reachable(from: ExecutionNode, through: (node: ExecutionNode) => boolean): Set<ExecutionNode> {
  const found = new Set(from.successors.filter(through))
  for (const node of found) for (const after of node.successors) if (through(after)) found.add(after)
  return found
}

function atomsInRange({ first, end }: NodeRange, atomStates: AtomStates): AtomNode[] {
  return atomStates.graph.nodes.slice(first, end).filter(isAtom)
}
