/** Parts of a board, for views that hold no more of it. One round trip each, and what is asked for is all that is read. */
import type { SqlDriver } from '../../postgres/index.ts'
import type { Sections, Spot } from '../backend.ts'
import { PRIORITIES, rank } from '../priority.ts'
import { isJobNumber, jobId, jobNumber } from './records.ts'
import { asking } from './words.ts'

export interface BoardSectionsOptions {
  readonly driver: SqlDriver
  readonly schema: string
  readonly board: number
  /** For errors. */
  readonly uri: string
  /** Called with the number of a job that is none: it is left out. */
  readonly misnumbered: (number: unknown) => void
}

/** As the functions tell a job. */
type Told = readonly [id: number, rank: number, dueAt: number, claimed: boolean, cancelled: boolean]

export class BoardSections implements Omit<Sections, 'window' | 'windowBytes'> {
  readonly #options: BoardSectionsOptions

  constructor(options: BoardSectionsOptions) {
    this.#options = options
  }

  async stretch({ after, limit, due }: Parameters<Sections['stretch']>[0]): ReturnType<Sections['stretch']> {
    const spots: Spot[] = []
    let at = Number.POSITIVE_INFINITY
    for (let from: readonly [number, number] = after ? [rank(after.priority), jobNumber(after.id)] : [-1, 0]; ; ) {
      const count = limit - spots.length
      const answer = await this.#ask('SELECT @.stretch($1, $2::smallint, $3, $4, $5) AS answer', [...from, count, due])
      const page = answer as { at: number; spots: readonly Told[] }
      at = Math.min(at, page.at)
      spots.push(...this.#spots(page.spots))
      const last = page.spots.at(-1)
      if (!last || page.spots.length < count) return { at, spots, end: true }
      if (spots.length >= limit) return { at, spots, end: false }
      from = behind(last)
    }
  }

  async resting({ after, limit }: Parameters<Sections['resting']>[0]): Promise<readonly Spot[]> {
    const told = await this.#ask('SELECT @.resting($1, $2, $3) AS answer', [after, limit])
    return this.#spots(told as readonly Told[])
  }

  async claimed(): Promise<readonly Spot[]> {
    return this.#spots((await this.#ask('SELECT @.claimed($1) AS answer', [])) as readonly Told[])
  }

  async fates(ids: readonly string[]): ReturnType<Sections['fates']> {
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
  #spots(told: readonly Told[]): Spot[] {
    return told.flatMap((each) => {
      if (isJobNumber(each[0])) return [spotOf(each)]
      this.#options.misnumbered(each[0])
      return []
    })
  }

  async #ask(text: string, values: readonly unknown[]): Promise<unknown> {
    const { driver, schema, board, uri } = this.#options
    const query = () => driver.query(text.replaceAll('@', schema), [board, ...values])
    const { rows } = await asking(`listing ${uri}`, query)
    return rows[0]?.['answer']
  }
}

/** Where the next page begins. In each rank the numbers that are none come first, where they are negative, or last. */
function behind([id, place]: Told): readonly [rank: number, id: number] {
  if (isJobNumber(id)) return [place, id]
  return id > 0 ? [place + 1, 0] : [place, 0]
}

function spotOf([id, place, dueAt, claimed, cancelled]: Told): Spot {
  const priority = PRIORITIES[place] ?? 'NORMAL'
  return { id: jobId(id), order: BigInt(id), priority, dueAt, claimed, cancelled }
}
