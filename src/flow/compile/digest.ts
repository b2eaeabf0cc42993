/** The digest of a flow: equal in two processes that have the same flow. */
import { createHash } from 'node:crypto'
import type { AnyFlow } from '../patterns/flow.ts'
import { compile } from './compile.ts'

/**
 * Returns a digest of the flow's structure: name, version, atoms with their versions, arguments and results, and the order between
 * them. The code of the atoms is not part of it: give an atom another version when its code changes in a way that matters.
 */
export function flowDigest(flow: AnyFlow): string {
  const { nodes } = compile(flow)
  const structure = nodes.map(({ atom, needs, successors, retry, gates }) => [
    atom && [atom.kind, atom.name, atom.version, atom.provides ?? null],
    needs.map(({ argument, name, optional }) => [argument, name, optional]),
    successors.map(({ index }) => index),
    retry?.index ?? null,
    gates.length,
  ])
  const text = JSON.stringify([flow.name, flow.version, structure])
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
