/** Writes the transitions of all flows of one persistence together, the transitions of one flow as one row. */
import type { CommitResult } from '../../core/async/group-commit.ts'
import { StorageFailure } from '../../core/errors.ts'
import type { SqlDriver } from '../../postgres/index.ts'
import type { SqlAtom, SqlWrite, Written } from '../sql-flow-log.ts'
import { encodeStates } from '../sql-rows.ts'
import type { Statements } from './statements.ts'

/**
 * The transitions of one term, combined, because they update one row: the last state, and the final form of every atom.
 */
interface TermWrite {
  readonly last: SqlWrite
  readonly meta: Buffer | undefined
  readonly atoms: ReadonlyMap<string, SqlAtom>
}

/**
 * Writes transitions in one round trip and one transaction; a second round trip where some were refused.
 *
 * @throws StorageFailure when none was written, or when the outcome is unknown
 */
export async function writeAll(
  driver: SqlDriver,
  statements: Statements,
  group: readonly SqlWrite[],
): Promise<CommitResult<Written>[]> {
  const terms = foldByTerm(group)
  const { rows } = await driver.query(
    statements.write,
    toParameters([...terms.values()].sort((a, b) => Number(a.last.flow) - Number(b.last.flow))),
  )
  const moved = new Set(rows.map((row) => `${row['id']}/${row['term']}`))
  const rest = [...terms].filter(([key]) => !moved.has(key)).map(([, { last }]) => last)
  const judged = await judgeUnwritten(driver, statements, rest)
  return group.map((write) => ({ value: judged.get(toTermKey(write)) ?? 'written' }))
}

/** Returns the key of a term: the writes of a former and a new owner in one group must not be combined. */
function toTermKey({ flow, term }: SqlWrite): string {
  return `${flow}/${term}`
}

function foldByTerm(group: readonly SqlWrite[]): Map<string, TermWrite> {
  const terms = new Map<string, TermWrite & { atoms: Map<string, SqlAtom> }>()
  for (const write of group) {
    const before = terms.get(toTermKey(write))
    const atoms = before?.atoms ?? new Map<string, SqlAtom>()
    for (const atom of write.atoms) atoms.set(atom.name, atom)
    terms.set(toTermKey(write), { last: write, meta: write.meta ?? before?.meta, atoms })
  }
  return terms
}

/**
 * Judges the terms whose row did not change: they were superseded, unless this very write was done before and its
 * answer was lost.
 */
async function judgeUnwritten(
  driver: SqlDriver,
  statements: Statements,
  rest: readonly SqlWrite[],
): Promise<Map<string, Written>> {
  const judged = new Map<string, Written>()
  if (rest.length === 0) return judged
  const { rows } = await driver.query(statements.terms, [rest.map(({ flow }) => flow)])
  const found = new Map(rows.map((row) => [String(row['id']), row]))
  for (const write of rest) {
    const row = found.get(write.flow)
    const isOurs = row !== undefined && Number(row['term']) === write.term
    if (isOurs && Number(row['writes']) !== write.number)
      throw new StorageFailure(`flow number ${write.flow} was written by a client that did not acquire it`)
    judged.set(toTermKey(write), isOurs ? 'written' : { newerRun: row && Number(row['run']) })
  }
  return judged
}

function toParameters(flows: readonly TermWrite[]): unknown[] {
  const atoms = flows.flatMap(({ last: { flow, term }, atoms }) =>
    [...atoms.values()].map((atom) => ({ flow, term, ...atom })),
  )
  return [
    flows.map(({ last }) => last.flow),
    flows.map(({ last }) => last.term),
    flows.map(({ last }) => last.number),
    flows.map(({ last }) => last.change.state),
    flows.map(({ meta }) => meta ?? null),
    flows.map(({ last }) => encodeStates(last.change.states)),
    flows.map(({ last }) => last.change.at.toISOString()),
    atoms.map(({ flow }) => flow),
    atoms.map(({ term }) => term),
    atoms.map(({ name }) => name),
    atoms.map(({ position }) => position),
    atoms.map(({ kind }) => kind),
    atoms.map(({ version }) => version),
    atoms.map(({ state }) => state),
    atoms.map(({ intention }) => intention),
    atoms.map(({ body }) => body),
    atoms.map(({ states }) => states),
    atoms.map(({ createdAt }) => createdAt.toISOString()),
    atoms.map(({ updatedAt }) => updatedAt.toISOString()),
  ]
}
