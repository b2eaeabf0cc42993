/** Parts of a board, for views that hold no more of it. One round trip each, and what is asked for is all that is read. */
import type { SqlDriver } from '../../../postgres/index.ts'
import type { BoardSections, JobSummary } from '../../backend.ts'
import { PRIORITIES, rank } from '../../model/priority.ts'
import { translateErrors } from './errors.ts'
import { isJobNumber, jobId, jobNumber } from './records.ts'

export interface PostgresSectionsOptions {
  readonly driver: SqlDriver
  readonly schema: string
  readonly board: number
  /** For errors. */
  readonly uri: string
  /** Called with the number of a job that is none: it is left out. */
  readonly misnumbered: (number: unknown) => void
}

/** As the functions tell a job. */
type JobTuple = readonly [id: number, rank: number, dueAt: number, claimed: boolean, cancelled: boolean]

export class PostgresSections implements Omit<BoardSections, 'window' | 'windowBytes'> {
  readonly #options: PostgresSectionsOptions

  constructor(options: PostgresSectionsOptions) {
    this.#options = options
  }

  async range({ after, limit, due }: Parameters<BoardSections['range']>[0]): ReturnType<BoardSections['range']> {
    const spots: JobSummary[] = []
    let at = Number.POSITIVE_INFINITY
    for (let from: readonly [number, number] = after ? [rank(after.priority), jobNumber(after.id)] : [-1, 0]; ; ) {
      const count = limit - spots.length
      const answer = await this.#ask('SELECT @.stretch($1, $2::smallint, $3, $4, $5) AS answer', [...from, count, due])
      const page = answer as { at: number; spots: readonly JobTuple[] }
      at = Math.min(at, page.at)
      spots.push(...this.#spots(page.spots))
      const last = page.spots.at(-1)
      if (!last || page.spots.length < count) return { at, spots, end: true }
      if (spots.length >= limit) return { at, spots, end: false }
      from = behind(last)
    }
  }

  async delayed({ after, limit }: Parameters<BoardSections['delayed']>[0]): Promise<readonly JobSummary[]> {
    const answer = await this.#ask('SELECT @.resting($1, $2, $3) AS answer', [after, limit])
    return this.#spots(answer as readonly JobTuple[])
  }

  async claimed(): Promise<readonly JobSummary[]> {
    return this.#spots((await this.#ask('SELECT @.claimed($1) AS answer', [])) as readonly JobTuple[])
  }

  async statusOf(ids: readonly string[]): ReturnType<BoardSections['statusOf']> {
    const found = await this.#ask(
      `SELECT pg_catalog.json_build_array(
  (SELECT coalesce(pg_catalog.json_agg(id), '[]') FROM @.jobs WHERE board + 0 = $1 AND id = ANY($2::bigint[])),
  (SELECT coalesce(pg_catalog.json_agg(id), '[]') FROM @.trash WHERE board = $1 AND id = ANY($2::bigint[]))) AS answer`,
      [ids.map(jobNumber)],
    )
    const [there, trashed] = (found as readonly (readonly number[])[]).map((numbers) => new Set(numbers.map(jobId)))
    return ids.map((id) => (there?.has(id) ? 'there' : trashed?.has(id) ? 'trashed' : 'gone'))
  }

  async find(uuid: string): Promise<string | undefined> {
    // A text that Postgres does not take is nobody's.
    if (uuid.includes('\0')) return undefined
    const text = 'SELECT min(id) AS answer FROM @.jobs WHERE board + 0 = $1 AND uuid = $2'
    const found = await this.#ask(text, [uuid])
    return isJobNumber(Number(found)) ? jobId(String(found)) : undefined
  }

  /** Leaves out what has a number that no board gives: Postgres would refuse to read it, and with it the jobs beside it. */
  #spots(answer: readonly JobTuple[]): JobSummary[] {
    return answer.flatMap((each) => {
      if (isJobNumber(each[0])) return [toJobSummary(each)]
      this.#options.misnumbered(each[0])
      return []
    })
  }

  async #ask(text: string, values: readonly unknown[]): Promise<unknown> {
    const { driver, schema, board, uri } = this.#options
    const query = () => driver.query(text.replaceAll('@', schema), [board, ...values])
    const { rows } = await translateErrors(`listing ${uri}`, query)
    return rows[0]?.['answer']
  }
}

/** Where the next page begins. In each rank the numbers that are none come first, where they are negative, or last. */
function behind([id, place]: JobTuple): readonly [rank: number, id: number] {
  if (isJobNumber(id)) return [place, id]
  return id > 0 ? [place + 1, 0] : [place, 0]
}

function toJobSummary([id, place, dueAt, claimed, cancelled]: JobTuple): JobSummary {
  const priority = PRIORITIES[place] ?? 'NORMAL'
  return { id: jobId(id), order: BigInt(id), priority, dueAt, claimed, cancelled }
}
