/**
 * Deciders: who is asked before a node may start, and what is left out when the answer is no.
 *
 * A decider whose predecessors were all left out themselves abstains. One no is enough; of several the one that reaches
 * furthest counts.
 */
import { InvalidArgument } from '../core/errors.ts'
import type { AtomNode, DeciderGate, Depth, ExecutionNode, NodeRange } from '../flow/index.ts'
import { type AtomStates, isAtom } from './atom-states.ts'

/** From the one that leaves out least. */
const DEPTHS: readonly Depth[] = ['ATOM', 'NEIGHBORS', 'FLOW', 'ALL']

/**
 * Asks the deciders of a node that everything is ready for, and leaves out what they say. Resolves to whether it starts.
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
  // A promise is as good as a yes, whatever comes of it.
  if (typeof Object(answer)['then'] === 'function')
    throw new InvalidArgument('a decider has to answer at once, with true or false; this one is async')
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

/** What is left out beside what was decided about. */
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
