/** Acquires several flows in one transaction. */
import type { CommitResult } from '../../core/async/group-commit.ts'
import { StorageFailure } from '../../core/errors.ts'
import { encodeText, type Row, type SqlDriver } from '../../postgres/index.ts'
import type { AtomDetail, FlowDetail } from '../models.ts'
import type { AcquireRequest } from '../persistence.ts'
import { RecordDecoder } from '../record-memory.ts'
import { fencedError } from '../requests.ts'
import type { FlowRow } from '../sql-flow-log.ts'
import { encodeStates, parseAtom, parseFlow, toBytes } from '../sql-rows.ts'
import type { Statements } from './statements.ts'

export interface AcquiredRow {
  readonly flow: FlowDetail
  readonly row: FlowRow
}

/**
 * Acquires flows: one round trip, a second where flows have been run before, and one more for each refused flow.
 *
 * @throws StorageFailure when none was acquired, or when the outcome is unknown
 */
export async function acquireAll(
  driver: SqlDriver,
  statements: Statements,
  group: readonly AcquireRequest[],
): Promise<CommitResult<AcquiredRow>[]> {
  const { rows } = await driver.query(statements.acquire, toParameters(group))
  const taken = new Map(rows.map((row) => [Number(row['at']) - 1, row]))
  const atoms = await readAtoms(driver, statements, rows)
  const outcomes = group.map(async (request, index): Promise<CommitResult<AcquiredRow>> => {
    const row = taken.get(index)
    return row ? { value: toAcquired(row, atoms) } : { error: await fencedRejection(driver, statements, request) }
  })
  return Promise.all(outcomes)
}

function toParameters(group: readonly AcquireRequest[]): unknown[] {
  const at = new Date()
  return [
    group.map(({ book }) => encodeText(book.uuid)),
    group.map(({ book }) => encodeText(book.name)),
    group.map(({ flow }) => encodeText(flow.uuid)),
    group.map(({ flow }) => encodeText(flow.name)),
    group.map(({ flow }) => encodeText(flow.version)),
    group.map(({ run }) => run),
    group.map(({ claim }) => encodeText(claim)),
    group.map(({ book }) => toBytes(book.meta ?? {})),
    toBytes({}),
    encodeStates([{ state: 'PENDING', at, run: 0 }]),
    at.toISOString(),
  ]
}

interface AtomsOfFlow {
  readonly atoms: AtomDetail[]
  readonly decoder: RecordDecoder
}

/**
 * Reads the atoms after the acquire was committed: from then on no other term can write, so the atoms are complete. A
 * flow in its first term has none.
 */
async function readAtoms(
  driver: SqlDriver,
  statements: Statements,
  rows: readonly Row[],
): Promise<ReadonlyMap<string, AtomsOfFlow>> {
  const flows = rows.filter((row) => Number(row['term']) > 1).map((row) => String(row['id']))
  const found = new Map<string, AtomsOfFlow>()
  if (flows.length === 0) return found
  for (const row of (await driver.query(statements.atoms, [flows])).rows) {
    const flow = String(row['flow'])
    const { atoms, decoder } = found.get(flow) ?? { atoms: [], decoder: new RecordDecoder() }
    atoms.push(parseAtom(row, decoder))
    found.set(flow, { atoms, decoder })
  }
  return found
}

function toAcquired(row: Row, atoms: ReadonlyMap<string, AtomsOfFlow>): AcquiredRow {
  const id = String(row['id'])
  const flow = parseFlow(row, atoms.get(id)?.atoms ?? [])
  return { flow, row: { id, term: Number(row['term']), writes: Number(row['writes']) } }
}

async function fencedRejection(driver: SqlDriver, statements: Statements, request: AcquireRequest): Promise<Error> {
  const { book, flow, run, claim } = request
  const { rows } = await driver.query(statements.owner, [encodeText(book.uuid), encodeText(flow.uuid)])
  const newest = Number(rows[0]?.['run'] ?? 0)
  const another = rows[0]?.['claim'] !== encodeText(claim)
  if (newest > run || (newest === run && another)) return fencedError(request, newest)
  return new StorageFailure(`flow ${flow.uuid} changed while it was acquired; try again`, { retryable: true })
}
