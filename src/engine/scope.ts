/**
 * Which values an atom sees. The store comes first and shadows everything, as in TaskFlow; then what the nearest atom
 * before it has provided.
 */
import { MissingDependencies } from '../core/errors.ts'
import type { AnyFlow, ExecutionGraph, ExecutionNode } from '../flow/index.ts'
import type { Ledger } from './ledger.ts'

export type Store = Readonly<Record<string, unknown>>

/**
 * Checks every atom before any of them runs.
 *
 * @throws MissingDependencies naming each atom and what it lacks
 */
export function assertSatisfied(flow: AnyFlow, options: { graph: ExecutionGraph; store: Store }): void {
  const { graph, store } = options
  const lacking: string[] = []
  for (const { atom, sources } of graph.nodes) {
    const missing = atom.requires.filter((name) => !sources.has(name) && !Object.hasOwn(store, name))
    if (missing.length > 0) lacking.push(`${atom.kind} ${atom.name} requires ${missing.join(', ')}`)
  }
  if (lacking.length === 0) return
  throw new MissingDependencies(
    `flow ${flow.name}: ${lacking.join('; ')}: put it into the store, or have an earlier task provide it`,
  )
}

/**
 * The arguments of an atom.
 *
 * @throws MissingDependencies when what provides one has no success on record: the flow was changed, then reverted
 */
export function argumentsOf(node: ExecutionNode, options: { store: Store; ledger: Ledger }): Record<string, unknown> {
  const { store, ledger } = options
  const lookUp = (name: string): unknown => {
    if (Object.hasOwn(store, name)) return store[name]
    const provider = node.sources.get(name)
    const record = provider && ledger.atom(provider.atom.name)
    if (record?.state === 'SUCCESS') return record.result
    throw new MissingDependencies(`${node.atom.kind} ${node.atom.name} requires ${name}, which nothing has provided`)
  }
  return Object.fromEntries(node.atom.requires.map((name) => [name, lookUp(name)]))
}

/** What has been provided and not been undone; of several providers of a name, the last one's. */
export function resultsOf(graph: ExecutionGraph, ledger: Ledger): Record<string, unknown> {
  const results: [string, unknown][] = []
  for (const { atom } of graph.nodes) {
    if (atom.provides === undefined || !ledger.has(atom.name)) continue
    const record = ledger.atom(atom.name)
    if (record.state === 'SUCCESS') results.push([atom.provides, record.result])
  }
  return Object.fromEntries(results)
}
