/** Acquires of several flows at once: one transaction for all of them. */
import { StorageFailure } from '../../core/errors.ts'
import type { Outcome } from '../../core/group-commit.ts'
import { type Row, type SqlDriver, storable } from '../../postgres/index.ts'
import type { AtomDetail, FlowDetail } from '../models.ts'
import type { AcquireRequest } from '../persistence.ts'
import { RecordDecoder } from '../record-memory.ts'
import { fenced } from '../requests.ts'
import { atomOf, bytes, flowOf, statesJson } from './rows.ts'
import type { Statements } from './statements.ts'

export interface AcquiredRow {
  readonly flow: FlowDetail
  readonly row: { readonly id: string; readonly term: number; readonly writes: number }
}

/**
 * One round trip, a second where flows have been run before, and one more for each that is refused.
 *
 * @throws StorageFailure when none was acquired, or when nobody can tell
 */
export async function acquireAll(
  driver: SqlDriver,
  statements: Statements,
  batch: readonly AcquireRequest[],
): Promise<Outcome<AcquiredRow>[]> {
  const { rows } = await driver.query(statements.acquire, parametersOf(batch))
  const taken = new Map(rows.map((row) => [Number(row['at']) - 1, row]))
  const atoms = await atomsOf(driver, statements, rows)
  const outcomes = batch.map(async (request, index): Promise<Outcome<AcquiredRow>> => {
    const row = taken.get(index)
    return row ? { value: acquired(row, atoms) } : { error: await refusal(driver, statements, request) }
  })
  return Promise.all(outcomes)
}

function parametersOf(batch: readonly AcquireRequest[]): unknown[] {
  const at = new Date()
  return [
    batch.map(({ book }) => storable(book.uuid)),
    batch.map(({ book }) => storable(book.name)),
    batch.map(({ flow }) => storable(flow.uuid)),
    batch.map(({ flow }) => storable(flow.name)),
    batch.map(({ flow }) => storable(flow.version)),
    batch.map(({ run }) => run),
    batch.map(({ claim }) => storable(claim)),
    batch.map(({ book }) => bytes(book.meta ?? {})),
    bytes({}),
    statesJson([{ state: 'PENDING', at, run: 0 }]),
    at.toISOString(),
  ]
}

interface AtomsOfFlow {
  readonly atoms: AtomDetail[]
  readonly decoder: RecordDecoder
}

/**
 * Read after the acquire has been committed: from then on no other term can write, so what is there is all there will be.
 * A flow in its first term has none.
 */
async function atomsOf(
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
    atoms.push(atomOf(row, decoder))
    found.set(flow, { atoms, decoder })
  }
  return found
}

function acquired(row: Row, atoms: ReadonlyMap<string, AtomsOfFlow>): AcquiredRow {
  const id = String(row['id'])
  const flow = flowOf(row, atoms.get(id)?.atoms ?? [])
  return { flow, row: { id, term: Number(row['term']), writes: Number(row['writes']) } }
}

async function refusal(driver: SqlDriver, statements: Statements, request: AcquireRequest): Promise<Error> {
  const { book, flow, run, claim } = request
  const { rows } = await driver.query(statements.owner, [storable(book.uuid), storable(flow.uuid)])
  const newest = Number(rows[0]?.['run'] ?? 0)
  const another = rows[0]?.['claim'] !== storable(claim)
  if (newest > run || (newest === run && another)) return fenced(request, newest)
  return new StorageFailure(`flow ${flow.uuid} changed while it was acquired; try again`, { retryable: true })
}
