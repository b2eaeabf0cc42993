/** Collects the results of a flow from the records of its atoms. */
import { namesProvided, pickPart } from '../atoms/atom.ts'
import type { ExecutionGraph } from './execution-graph.ts'

/** The fields of an atom's record that decide what it provides. */
export interface RecordedResult {
  readonly state: string
  readonly result?: unknown
}

/**
 * Returns the results that were provided and not undone; of several providers of a name, the last one's.
 *
 * @param read returns the record of an atom, undefined where it has none
 */
export function collectProvided(
  graph: ExecutionGraph,
  read: (atom: string) => RecordedResult | undefined,
): Record<string, unknown> {
  const results: [string, unknown][] = []
  for (const { atom } of graph.atoms) {
    const record = atom.provides === undefined ? undefined : read(atom.name)
    if (record?.state !== 'SUCCESS' || atom.provides === undefined) continue
    for (const name of namesProvided(atom.provides)) {
      const part = pickPart(record.result, atom.provides, name)
      if (part) results.push([name, part.value])
    }
  }
  return Object.fromEntries(results)
}
