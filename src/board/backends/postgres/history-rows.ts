/** The jobs of the history, as arguments of the functions that end jobs, and as the board has them: see `functions/history.sql`. */
import { decodeText, encodeText, type Row, type SqlDriver } from '../../../postgres/index.ts'
import {
  decodeEndedJob,
  type EndedJob,
  encodeEndedJob,
  type HistoryEntry,
  toEndedJob,
  toEndedJobRecord,
} from '../../model/ended-job.ts'
import type { UnreadableValues } from '../unreadable-values.ts'
import { parsePosting, readBytes } from './records.ts'

/** The most jobs of one read: each can have results of 64 KiB. */
const JOBS_PER_READ = 500

/** The query of {@link parseEndedJob}; times in milliseconds since 1970. All types are named, as everywhere outside of functions. */
const COLUMNS = `number, uuid, record, body, life, who, reason,
  extract(epoch FROM posted_at)::float8 * 1000::float8 AS posted_at, extract(epoch FROM ended_at)::float8 * 1000::float8 AS ended_at`

/** Returns what the end of jobs adds to the history: their uuids, their records, the lengths of these, and how many jobs are kept. */
export function toHistoryParameters(
  ends: readonly { readonly history?: HistoryEntry; readonly posting: { readonly uuid: string } }[],
): [string[], Buffer, (number | null)[], number | null] {
  const records = ends.map(({ history }) => history && encodeEndedJob(history.job))
  const [entry] = ends.flatMap(({ history }) => history ?? [])
  return [
    ends.map(({ posting }) => encodeText(posting.uuid)),
    Buffer.concat(records.flatMap((record) => record ?? [])),
    records.map((record) => record?.length ?? null),
    entry?.keep ?? null,
  ]
}

export interface HistoryRowsOptions {
  readonly driver: SqlDriver
  readonly schema: string
  readonly board: number
  readonly unreadable: UnreadableValues
}

export class HistoryRows {
  readonly #options: HistoryRowsOptions

  constructor(options: HistoryRowsOptions) {
    this.#options = options
  }

  /** Returns the newest jobs, newest first. */
  async newest(limit: number): Promise<EndedJob[]> {
    const { unreadable } = this.#options
    const jobs: EndedJob[] = []
    const text = `SELECT ${COLUMNS} FROM @.history WHERE board = $1 AND number < $2::bigint ORDER BY number DESC LIMIT $3`
    for (let before = MAX_NUMBER; jobs.length < limit; ) {
      const count = Math.min(JOBS_PER_READ, limit - jobs.length)
      const rows = await this.#query(text, [before, count])
      jobs.push(...rows.flatMap((row) => parseEndedJob(row) ?? unreadable.leftOut('history', toUuid(row))))
      if (rows.length < count) break
      before = String(rows.at(-1)?.['number'])
    }
    return jobs
  }

  /** Returns the newest record of each of the jobs. */
  async find(uuids: readonly string[]): Promise<(EndedJob | undefined)[]> {
    const found = new Map<string, EndedJob>()
    for (let from = 0; from < uuids.length; from += JOBS_PER_READ) {
      const rows = await this.#query(
        `SELECT DISTINCT ON (uuid) ${COLUMNS} FROM @.history WHERE board + 0 = $1 AND uuid = ANY($2::text[]) ORDER BY uuid, number DESC`,
        [uuids.slice(from, from + JOBS_PER_READ).map(encodeText)],
      )
      for (const job of rows.flatMap((row) => parseEndedJob(row) ?? [])) found.set(job.uuid, job)
    }
    return uuids.map((uuid) => found.get(uuid))
  }

  async #query(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const { driver, schema, board } = this.#options
    return (await driver.query(text.replaceAll('@', schema), [board, ...values])).rows
  }
}

/** The largest number of Postgres' type `bigint`. */
const MAX_NUMBER = '9223372036854775807'

function toUuid(row: Row): string {
  return decodeText(String(row['uuid']))
}

/** Parses a row of the history; undefined for one that no board has written. */
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
