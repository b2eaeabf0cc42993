/** Reads the dependencies of a job: see `functions/dependencies.sql`. */
import { type BackendDependencies, type KnownDependencies, MAX_SHOWN_DEPENDENCIES } from '../../contract/index.ts'
import type { PostgresBoard } from './store/board.ts'
import { translateErrors } from './store/errors.ts'
import { jobId, jobNumbers } from './store/rows.ts'

export class PostgresDependencies implements BackendDependencies {
  readonly #board: PostgresBoard

  constructor(board: PostgresBoard) {
    this.#board = board
  }

  async of(id: string): Promise<KnownDependencies> {
    this.#board.assertOpen()
    const { pool, schema } = this.#board
    const list = (wanted: string, known: string) =>
      `ARRAY(SELECT ${wanted}::text FROM ${schema}.dependencies WHERE ${known} = $1::bigint ORDER BY ${wanted} LIMIT $2) AS ${wanted}`
    const text = `SELECT ${list('waits_for', 'job')}, ${list('job', 'waits_for')}`
    const { rows } = await translateErrors(`looking for the dependencies of ${id}`, () =>
      pool.query(text, [...jobNumbers([id]), MAX_SHOWN_DEPENDENCIES]),
    )
    return { waitsFor: toIds(rows[0]?.['waits_for']), dependents: toIds(rows[0]?.['job']) }
  }
}

function toIds(found: unknown): string[] {
  return Array.isArray(found) ? found.map((number) => jobId(String(number))) : []
}
