/**
 * The values that an atom sees. What is injected into it comes first; then the store, which shadows everything, as in
 * TaskFlow; then what the nearest atom before it has provided.
 */
import { MissingDependencies } from '../core/errors.ts'
import { type AnyFlow, type AtomNode, collectProvided, type ExecutionGraph, pickPart } from '../flow/index.ts'
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
  for (const { atom, needs, sources } of graph.atoms) {
    if (needs.length === 0) continue
    const missing = needs.filter(({ name, optional }) => !optional && !sources.has(name) && !Object.hasOwn(store, name))
    if (missing.length > 0)
      lacking.push(`${atom.kind} ${atom.name} requires ${missing.map(({ name }) => name).join(', ')}`)
  }
  if (lacking.length === 0) return
  throw new MissingDependencies(
    `flow ${flow.name}: ${lacking.join('; ')}: put it into the store, or have an earlier task provide it`,
  )
}

/**
 * Returns the arguments of an atom.
 *
 * @throws MissingDependencies when no provider of an argument has a recorded success: a decider has left it out, or the
 * flow was changed, then reverted
 */
export function resolveArguments(node: AtomNode, options: { store: Store; ledger: Ledger }): Record<string, unknown> {
  if (node.needs.length === 0 && !node.atom.inject) return {}
  const args: [string, unknown][] = []
  for (const { argument, name, optional } of node.needs) {
    const found = lookUpValue(node, { name, ...options })
    if (found) args.push([argument, found.value])
    else if (!optional)
      throw new MissingDependencies(
        `${node.atom.kind} ${node.atom.name} requires ${name}, ${explainMissing(node, name, options)}`,
      )
  }
  // Not assigned one by one: an argument may be called __proto__.
  return Object.fromEntries(node.atom.inject ? [...args, ...Object.entries(node.atom.inject)] : args)
}

function explainMissing(node: AtomNode, name: string, { ledger }: { ledger: Ledger }): string {
  const nearest = node.sources.get(name)?.atom
  const isDone = nearest && ledger.atom(nearest.name).state === 'SUCCESS'
  return isDone
    ? `which ${nearest.kind} ${nearest.name} provides as a part of its result; but the result had no such part`
    : 'which nothing has provided'
}

function lookUpValue(
  node: AtomNode,
  { name, store, ledger }: { name: string; store: Store; ledger: Ledger },
): { readonly value: unknown } | undefined {
  if (Object.hasOwn(store, name)) return { value: store[name] }
  const nearest = node.sources.get(name)
  if (!nearest) return undefined
  const found = readProvided(nearest, { name, ledger })
  if (found) return found
  for (const provider of node.providers(name)) {
    const further = readProvided(provider, { name, ledger })
    if (further) return further
  }
  return undefined
}

function readProvided(
  { atom }: AtomNode,
  { name, ledger }: { name: string; ledger: Ledger },
): { readonly value: unknown } | undefined {
  const record = ledger.atom(atom.name)
  return record.state === 'SUCCESS' && atom.provides !== undefined
    ? pickPart(record.result, atom.provides, name)
    : undefined
}

/** Returns the results that were provided and not undone; of several providers of a name, the last one's. */
export function collectResults(graph: ExecutionGraph, ledger: Ledger): Record<string, unknown> {
  return collectProvided(graph, (name) => (ledger.has(name) ? ledger.atom(name) : undefined))
}
