/** Reads parts of a board for views that hold only a window of it, in one round trip each, and without reading more rows. */
import { decodeText, encodeText } from '../../../postgres/index.ts'
import type { BackendSections, JobSummary, QueueCount } from '../../contract/index.ts'
import { PRIORITIES, rank } from '../../model/claim-order.ts'
import { DEFAULT_QUEUE } from '../../model/queues.ts'
import type { PostgresBoard } from './store/board.ts'
import { translateErrors } from './store/errors.ts'
import { isJobNumber, jobId, jobNumber, jobNumbers } from './store/rows.ts'

/** The summary of a job as the SQL functions return it. The due time of a job that waits for others is `'Infinity'`: JSON has no such number. */
type JobTuple = readonly [
  ...[id: number, rank: number, dueAt: number | string, claimed: boolean, cancelled: boolean, queue: string | null],
  holds?: boolean,
]

/**
 * Each read fails without a session: no changes arrive then, and a view must not consider itself current. The next session reports a gap,
 * which makes the view list the board again.
 */
export class PostgresSections implements BackendSections {
  readonly window: number
  readonly windowBytes: number
  readonly #board: PostgresBoard

  constructor(board: PostgresBoard) {
    this.window = board.options.window
    this.windowBytes = board.options.windowBytes
    this.#board = board
  }

  async range({
    queue,
    after,
    limit,
    due,
  }: Parameters<BackendSections['range']>[0]): ReturnType<BackendSections['range']> {
    this.#board.requireSession('listing')
    const summaries: JobSummary[] = []
    let at = Number.POSITIVE_INFINITY
    for (let from: readonly [number, number] = after ? [rank(after.priority), jobNumber(after.id)] : [-1, 0]; ; ) {
      const count = limit - summaries.length
      const answer =
        queue === undefined
          ? await this.#ask('SELECT @.stretch($1, $2::smallint, $3, $4, $5) AS answer', [...from, count, due])
          : await this.#ask('SELECT @.queue_stretch($1, $6, $2::smallint, $3, $4, $5) AS answer', [
              ...[...from, count, due],
              toColumn(queue),
            ])
      const page = answer as { at: number; spots: readonly JobTuple[] }
      at = Math.min(at, page.at)
      summaries.push(...this.#toSummaries(page.spots))
      const last = page.spots.at(-1)
      if (!last || page.spots.length < count) return { at, jobs: summaries, end: true }
      if (summaries.length >= limit) return { at, jobs: summaries, end: false }
      from = positionAfter(last)
    }
  }

  async delayed({ queues, after, limit }: Parameters<BackendSections['delayed']>[0]): Promise<readonly JobSummary[]> {
    this.#board.requireSession('listing')
    if (!queues) {
      const answer = await this.#ask('SELECT @.resting($1, $2, $3) AS answer', [after, limit])
      return this.#toSummaries(answer as readonly JobTuple[])
    }
    const text = 'SELECT @.queue_resting($1, $4, $2, $3) AS answer'
    const parts = await Promise.all(queues.map((queue) => this.#ask(text, [after, limit, toColumn(queue)])))
    return parts
      .flatMap((answer) => this.#toSummaries(answer as readonly JobTuple[]))
      .sort((a, b) => a.dueAt - b.dueAt)
      .slice(0, limit)
  }

  async queues(): Promise<readonly QueueCount[]> {
    this.#board.requireSession('listing')
    const counts = (await this.#ask('SELECT @.queue_counts($1) AS answer', [])) as readonly [string | null, number][]
    return counts.map(([queue, jobs]) => ({ queue: queue === null ? DEFAULT_QUEUE : decodeText(queue), jobs }))
  }

  async claimed(): Promise<readonly JobSummary[]> {
    this.#board.requireSession('listing')
    return this.#toSummaries((await this.#ask('SELECT @.claimed($1) AS answer', [])) as readonly JobTuple[])
  }

  async statusOf(ids: readonly string[]): ReturnType<BackendSections['statusOf']> {
    this.#board.requireSession('listing')
    const found = await this.#ask(
      `SELECT pg_catalog.json_build_array(
  (SELECT coalesce(pg_catalog.json_agg(id), '[]') FROM @.jobs WHERE board + 0 = $1 AND id = ANY($2::bigint[])),
  (SELECT coalesce(pg_catalog.json_agg(id), '[]') FROM @.trash WHERE board = $1 AND id = ANY($2::bigint[]))) AS answer`,
      [jobNumbers(ids)],
    )
    const [onBoard, trashed] = (found as readonly (readonly number[])[]).map((numbers) => new Set(numbers.map(jobId)))
    return ids.map((id) => (onBoard?.has(id) ? 'there' : trashed?.has(id) ? 'trashed' : 'gone'))
  }

  async find(uuid: string): Promise<string | undefined> {
    this.#board.requireSession('listing')
    // Postgres stores no text with a NUL character, so no job has such a uuid.
    if (uuid.includes('\0')) return undefined
    const text = 'SELECT min(id) AS answer FROM @.jobs WHERE board + 0 = $1 AND uuid = $2'
    const found = await this.#read(text, [uuid])
    return isJobNumber(Number(found)) ? jobId(String(found)) : undefined
  }

  /** Omits jobs with an invalid number: Postgres would refuse to read them, together with the other jobs of the request. */
  #toSummaries(answer: readonly JobTuple[]): JobSummary[] {
    return answer.flatMap((each) => {
      if (isJobNumber(each[0])) return [toJobSummary(each)]
      this.#board.reportInvalidNumber(each[0])
      return []
    })
  }

  #ask(text: string, values: readonly unknown[]): Promise<unknown> {
    return this.#board.readForView(() => this.#read(text, values))
  }

  async #read(text: string, values: readonly unknown[]): Promise<unknown> {
    const [row] = await translateErrors(`listing ${this.#board.uri}`, () => this.#board.query(text, values))
    return row?.['answer']
  }
}

/** Returns the position after this job. In each rank, invalid numbers come first if they are negative, otherwise last. */
function positionAfter([id, priorityRank]: JobTuple): readonly [rank: number, id: number] {
  if (isJobNumber(id)) return [priorityRank, id]
  return id > 0 ? [priorityRank + 1, 0] : [priorityRank, 0]
}

function toJobSummary([id, priorityRank, dueAt, claimed, cancelled, queue, holds]: JobTuple): JobSummary {
  const priority = PRIORITIES[priorityRank] ?? 'NORMAL'
  const summary = { id: jobId(id), order: BigInt(id), priority, dueAt: Number(dueAt), claimed, cancelled }
  if (queue === null && holds !== true) return summary
  return { ...summary, ...(queue === null ? {} : { queue: decodeText(queue) }), holds: holds === true }
}

/** Returns the column `queue` of the jobs of a queue. */
function toColumn(queue: string): string | null {
  return queue === DEFAULT_QUEUE ? null : encodeText(queue)
}
