/**
 * Deciders: who is asked before a node may start, and what is left out when the answer is no.
 *
 * A decider whose predecessors were all left out themselves abstains. One no is enough; of several the one that reaches
 * furthest counts.
 */
import { InvalidArgument } from '../core/errors.ts'
import type { AtomNode, Depth, ExecutionNode, Gate, Stretch } from '../flow/index.ts'
import { isAtom, type Standing } from './standing.ts'

/** From the one that leaves out least. */
const REACH: readonly Depth[] = ['ATOM', 'NEIGHBORS', 'FLOW', 'ALL']

/**
 * Asks the deciders of a node that everything is ready for, and leaves out what they say. Resolves to whether it starts.
 *
 * @throws what a decider throws
 */
export function passesGates(node: ExecutionNode, standing: Standing): boolean {
  const refusing = node.gates.filter((gate) => refuses(gate, standing))
  const reach = Math.max(...refusing.map(({ depth }) => REACH.indexOf(depth)))
  for (const gate of refusing) if (REACH.indexOf(gate.depth) === reach) leaveOut(gate, standing)
  return refusing.length === 0
}

function refuses({ decider, history }: Gate, standing: Standing): boolean {
  const known = atomsIn(history, standing).filter((node) => standing.record(node).state === 'SUCCESS')
  if (known.length === 0) return false
  const results = known.map((node): [string, unknown] => [node.atom.name, standing.record(node).result])
  const answer: unknown = decider(Object.fromEntries(results))
  // A promise is as good as a yes, whatever comes of it.
  if (typeof Object(answer)['then'] === 'function')
    throw new InvalidArgument('a decider has to answer at once, with true or false; this one is async')
  return !answer
}

function leaveOut(gate: Gate, standing: Standing): void {
  const { first, end } = gate.target
  const target = standing.graph.nodes.slice(first, end)
  const by = target.find(isAtom)?.atom.name ?? ''
  for (const node of [...target, ...furtherOut(gate, standing)]) {
    if (isAtom(node)) standing.leaveOut(node, by)
    else standing.frontier.mark(node, { done: true, clean: true })
  }
}

/** What is left out beside what was decided about. */
function furtherOut({ depth, exit, scope }: Gate, standing: Standing): ExecutionNode[] {
  const isNear = (node: ExecutionNode) => isAtom(node) && node.atom.kind === 'task' && node.scope === scope
  switch (depth) {
    case 'ALL':
      return standing.after(exit)
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

function atomsIn({ first, end }: Stretch, standing: Standing): AtomNode[] {
  return standing.graph.nodes.slice(first, end).filter(isAtom)
}
