/**
 * Makes flows together with their first writes: one transaction in place of an acquire and a write. Only for the first run of a job: a flow that
 * exists already was created by its poster, or has another claim of this run, or was made by this very request, whose answer was lost.
 */
import type { CommitResult } from '../../core/async/group-commit.ts'
import { InvalidPosting } from '../../core/errors.ts'
import { arrayLiteral, encodeText, escapedArrayLiteral, type SqlDriver } from '../../postgres/index.ts'
import type { AcquireRequest } from '../persistence.ts'
import { supersededError } from '../requests.ts'
import type { FlowRow, SqlTransition } from '../sql-flow-log.ts'
import { toBytes } from '../sql-rows.ts'
import { acquireAll } from './acquirer.ts'
import type { Statements } from './statements.ts'
import { toAtomParameters, writeAll } from './writer.ts'

/** The acquire of a flow that has not run before, with its first transition. */
export interface BeginRequest {
  readonly request: AcquireRequest
  /** The time of the acquire. */
  readonly at: Date
  readonly first: SqlTransition
}

/**
 * Makes flows in one round trip; each flow that exists already takes more.
 *
 * @throws StorageFailure when none was made, or when the outcome is unknown
 */
export async function beginAll(
  driver: SqlDriver,
  statements: Statements,
  group: readonly BeginRequest[],
): Promise<CommitResult<FlowRow>[]> {
  const { rows } = await driver.query(statements.begin, toParameters(group))
  const made = new Map(rows.map((row) => [Number(row['position']) - 1, String(row['id'])]))
  const outcomes: CommitResult<FlowRow>[] = []
  for (const [index, each] of group.entries()) {
    const id = made.get(index)
    const { number } = each.first
    if (id !== undefined) outcomes.push({ value: { id, term: 1, writes: number } })
    else outcomes.push(await beginKnown(driver, statements, each))
  }
  return outcomes
}

function toParameters(group: readonly BeginRequest[]): unknown[] {
  const requests = group.map(({ request }) => request)
  const writes = group.map(({ first }) => first)
  const noMeta = toBytes({})
  return [
    arrayLiteral(requests.map(({ book }) => encodeText(book.uuid))),
    arrayLiteral(requests.map(({ book }) => encodeText(book.name))),
    arrayLiteral(requests.map(({ book }) => (book.meta ? toBytes(book.meta) : noMeta))),
    arrayLiteral(requests.map(({ flow }) => encodeText(flow.uuid))),
    arrayLiteral(requests.map(({ flow }) => encodeText(flow.name))),
    arrayLiteral(requests.map(({ flow }) => encodeText(flow.version))),
    arrayLiteral(requests.map(({ run }) => run)),
    arrayLiteral(requests.map(({ claim }) => encodeText(claim))),
    arrayLiteral(writes.map(({ number }) => number)),
    arrayLiteral(writes.map(({ state }) => state)),
    arrayLiteral(writes.map(({ meta }) => meta ?? noMeta)),
    escapedArrayLiteral(writes.map(({ states }) => states)),
    arrayLiteral(group.map(({ at }) => at.getTime())),
    arrayLiteral(writes.map((write) => write.at.getTime())),
    ...toAtomParameters(writes),
  ]
}

/** Acquires a flow that exists already, and writes its first transition, unless an earlier try has done so. */
async function beginKnown(
  driver: SqlDriver,
  statements: Statements,
  { request, first }: BeginRequest,
): Promise<CommitResult<FlowRow>> {
  const [acquired] = await acquireAll(driver, statements, [request])
  if (!acquired || 'error' in acquired) return acquired ?? { error: new Error('an acquire has no outcome') }
  const { row, flow } = acquired.value
  if (flow.name !== request.flow.name)
    return {
      error: new InvalidPosting(
        `flow ${flow.uuid} is one of ${request.flow.name}, but its logbook is one of flow ${flow.name}; post it with another uuid`,
      ),
    }
  // Only this claim writes in its run, and a flow without a run has no writes.
  if (row.writes > 0) return { value: row }
  const [written] = await writeAll(driver, statements, [{ ...first, flow: row.id, term: row.term }])
  if (!written || 'error' in written) return written ?? { error: new Error('a write has no outcome') }
  if (written.value === 'written') return { value: row }
  return { error: supersededError(request, written.value.newerRun) }
}
