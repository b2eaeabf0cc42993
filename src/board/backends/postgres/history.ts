/** Reads the history of the jobs that have ended: see `functions/history.sql`. */
import { decodeText, encodeText, type Row } from '../../../postgres/index.ts'
import type { BackendHistory } from '../../contract/index.ts'
import { decodeEndedJob, type EndedJob, toEndedJob, toEndedJobRecord } from '../../model/ended-job.ts'
import { UnreadableValues } from '../unreadable-values.ts'
import type { PostgresBoard } from './store/board.ts'
import { translateErrors } from './store/errors.ts'
import { parsePosting, readBytes } from './store/rows.ts'

/** The most jobs of one read: each can have results of 64 KiB. */
const JOBS_PER_READ = 500

/** The query of {@link parseEndedJob}; times in milliseconds since 1970. All types are named, as everywhere outside of functions. */
const COLUMNS = `number, uuid, record, body, life, who, reason,
  extract(epoch FROM posted_at)::float8 * 1000::float8 AS posted_at, extract(epoch FROM ended_at)::float8 * 1000::float8 AS ended_at`

/** The largest number of Postgres' type `bigint`. */
const MAX_NUMBER = '9223372036854775807'

export class PostgresHistory implements BackendHistory {
  readonly #board: PostgresBoard
  readonly #unreadable: UnreadableValues

  constructor(board: PostgresBoard) {
    this.#board = board
    this.#unreadable = new UnreadableValues({ onError: (error) => board.sink.error(error) })
  }

  async newest({ limit }: { readonly limit: number }): Promise<EndedJob[]> {
    return this.#read(async () => {
      const jobs: EndedJob[] = []
      const text = `SELECT ${COLUMNS} FROM @.history WHERE board = $1 AND number < $2::bigint ORDER BY number DESC LIMIT $3`
      for (let before = MAX_NUMBER; jobs.length < limit; ) {
        const count = Math.min(JOBS_PER_READ, limit - jobs.length)
        const rows = await this.#board.query(text, [before, count])
        const leaveOut = (row: Row) => this.#unreadable.leftOut('history', decodeText(String(row['uuid'])))
        jobs.push(...rows.flatMap((row) => parseEndedJob(row) ?? leaveOut(row)))
        if (rows.length < count) break
        before = String(rows.at(-1)?.['number'])
      }
      return jobs
    })
  }

  async find(uuids: readonly string[]): Promise<(EndedJob | undefined)[]> {
    return this.#read(async () => {
      const found = new Map<string, EndedJob>()
      for (let from = 0; from < uuids.length; from += JOBS_PER_READ) {
        const rows = await this.#board.query(
          `SELECT DISTINCT ON (uuid) ${COLUMNS} FROM @.history WHERE board + 0 = $1 AND uuid = ANY($2::text[]) ORDER BY uuid, number DESC`,
          [uuids.slice(from, from + JOBS_PER_READ).map(encodeText)],
        )
        for (const job of rows.flatMap((row) => parseEndedJob(row) ?? [])) found.set(job.uuid, job)
      }
      return uuids.map((uuid) => found.get(uuid))
    })
  }

  async #read<T>(read: () => Promise<T>): Promise<T> {
    this.#board.assertOpen()
    return translateErrors(`reading the history of ${this.#board.uri}`, read)
  }
}

/** Parses a row of the history; undefined for a row that no board has written. */
function parseEndedJob(row: Row): EndedJob | undefined {
  const record = readBytes(row, 'record')
  if (record) return decodeEndedJob(record)
  try {
    const [postedAt, endedAt] = [Number(row['posted_at']), Number(row['ended_at'])]
    const [who, reason] = [decodeText(String(row['who'])), decodeText(String(row['reason']))]
    return toEndedJob({
      ...toEndedJobRecord(parsePosting(row), { outcome: 'TRASHED', who, reason, postedAt, endedAt }),
    })
  } catch {
    return undefined
  }
}
