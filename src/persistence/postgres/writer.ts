/** Writes the transitions of all flows of one persistence together. A group has one transition of each term at most. */
import type { CommitResult } from '../../core/async/group-commit.ts'
import type { HeldBackWrite } from '../../core/async/held-back-write.ts'
import { StorageFailure } from '../../core/errors.ts'
import { arrayLiteral, encodeText, escapedArrayLiteral, type SqlDriver } from '../../postgres/index.ts'
import type { SqlWrite, Written } from '../sql-flow-log.ts'
import type { Statements } from './statements.ts'

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
  const { rows } = await driver.query(statements.write, toParameters(group))
  const moved = new Set(rows.map((row) => `${row['id']}/${row['term']}`))
  const rest = group.filter((write) => !moved.has(toTermKey(write)))
  const judged = await judgeUnwritten(driver, statements, rest)
  return group.map((write) => ({ value: judged.get(toTermKey(write)) ?? 'written' }))
}

/** Returns the key of a term: a group may have a write of a former owner and of a new one. */
function toTermKey({ flow, term }: SqlWrite): string {
  return `${flow}/${term}`
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

/** Returns the parameters of the function `write_flows`. @param claims the claims that the flows must have; not checked where the term proves them */
function toParameters(writes: readonly SqlWrite[], claims: readonly string[] = []): string[] {
  return [
    arrayLiteral(writes.map(({ flow }) => flow)),
    arrayLiteral(writes.map(({ term }) => term)),
    arrayLiteral(writes.map((_, index) => claims[index])),
    arrayLiteral(writes.map(({ number }) => number)),
    arrayLiteral(writes.map(({ state }) => state)),
    arrayLiteral(writes.map(({ meta }) => meta)),
    escapedArrayLiteral(writes.map(({ states }) => states)),
    arrayLiteral(writes.map(({ at }) => at.getTime())),
    ...toAtomParameters(writes),
  ]
}

/** A write that a board of the same schema can include in the transaction of a settlement, by the function `settle_recorded`. */
export class SqlHeldBackWrite implements HeldBackWrite {
  readonly place: string
  readonly bytes: number
  readonly send: () => Promise<void>
  readonly #write: SqlWrite
  readonly #claim: string

  constructor(options: {
    readonly place: string
    readonly write: SqlWrite
    /** The claim of the run: it proves that the row is the flow's, and of this database. */
    readonly claim: string
    readonly send: () => Promise<void>
  }) {
    this.place = options.place
    this.bytes = options.write.bytes
    this.send = options.send
    this.#write = options.write
    this.#claim = options.claim
  }

  /** Returns the parameters of the function `write_flows`. */
  toArguments(writes: readonly HeldBackWrite[]): unknown[] {
    const own = writes.flatMap((each) => (each instanceof SqlHeldBackWrite ? each : []))
    return toParameters(
      own.map((each) => each.#write),
      own.map((each) => encodeText(each.#claim)),
    )
  }
}

/** Returns the atoms of writes as parameters: for each atom the position of its write, from 1, and its columns. */
export function toAtomParameters(writes: readonly Pick<SqlWrite, 'atoms'>[]): string[] {
  const atoms = writes.flatMap((write) => write.atoms)
  return [
    arrayLiteral(writes.flatMap((write, index) => write.atoms.map(() => index + 1))),
    arrayLiteral(atoms.map(({ isNew }) => isNew)),
    arrayLiteral(atoms.map(({ name }) => name)),
    arrayLiteral(atoms.map(({ position }) => position)),
    arrayLiteral(atoms.map(({ kind }) => kind)),
    arrayLiteral(atoms.map(({ version }) => version)),
    arrayLiteral(atoms.map(({ state }) => state)),
    arrayLiteral(atoms.map(({ intention }) => intention)),
    arrayLiteral(atoms.map(({ body }) => body)),
    escapedArrayLiteral(atoms.map(({ states }) => states)),
    arrayLiteral(atoms.map(({ createdAt }) => createdAt.getTime())),
    arrayLiteral(atoms.map(({ updatedAt }) => updatedAt.getTime())),
  ]
}
