/**
 * Reads parts of a board for views that hold only a window of it. Long parts are read in pages, so that no client waits while
 * Redis builds one long answer.
 */
import type { BoardSections, JobSummary } from '../../contract/index.ts'
import { type ClaimOrderKey, PRIORITIES, rank } from '../../model/claim-order.ts'
import type { WindowSize } from '../window-size.ts'
import { decodeText } from './records.ts'
import { decodeReply, toList } from './replies.ts'
import { SCRIPTS, type Script } from './scripts.ts'
import type { RedisSession } from './session.ts'

/** The number of jobs that one call reads. */
const PAGE_SIZE = 1_000
/** Limit of the jobs that are read for one uuid: there are several only if the uuid was posted again. */
const MAX_SAME_UUID = 100

/** The factor of the rank in a score; `order` in `scripts/shared/steps.lua` computes scores with it. */
const RANK_SCORE = 2 ** 50
const ORDER_EPOCH_US = 1_577_836_800_000_000

/** The summary of a job as the scripts return it. */
type JobTuple = readonly [id: string, score: string, dueAt: string, claimed: 0 | 1, cancelled: 0 | 1]

export interface RedisSectionsOptions extends WindowSize {
  readonly session: () => RedisSession
  /** The name of the key with the uuids. */
  readonly uuids: string
  /** Called with the id of a job whose score in the claim order is invalid; the job is omitted. */
  readonly misplaced: (id: string) => void
}

export class RedisSections implements BoardSections {
  readonly window: number
  readonly windowBytes: number
  readonly #options: RedisSectionsOptions

  constructor(options: RedisSectionsOptions) {
    this.window = options.window
    this.windowBytes = options.windowBytes
    this.#options = options
  }

  async range({ after, limit, due }: Parameters<BoardSections['range']>[0]): ReturnType<BoardSections['range']> {
    const summaries: JobSummary[] = []
    let at = Number.POSITIVE_INFINITY
    for (let from = after ? toScore(after) : '-inf'; ; ) {
      const count = due ? PAGE_SIZE : Math.min(PAGE_SIZE, limit - summaries.length)
      const [now, jobs, last] = decodeReply<[number, readonly JobTuple[], string]>(
        await this.#run(SCRIPTS.range, [from === '-inf' ? from : `(${from}`, String(count)]),
      )
      at = Math.min(at, Number(now))
      const page = this.#toSummaries(jobs)
      summaries.push(...(due ? page.filter(({ claimed, dueAt }) => !claimed && dueAt <= at) : page))
      if (summaries.length >= limit) return { jobs: summaries.slice(0, limit), end: false, at }
      if (last === '') return { jobs: summaries, end: true, at }
      from = last
    }
  }

  async delayed({ after, limit }: Parameters<BoardSections['delayed']>[0]): Promise<readonly JobSummary[]> {
    return this.#toSummaries(
      decodeReply<readonly JobTuple[]>(await this.#run(SCRIPTS.delayed, [`(${after}`, String(limit)])),
    )
  }

  async claimed(): Promise<readonly JobSummary[]> {
    return this.#toSummaries(decodeReply<readonly JobTuple[]>(await this.#run(SCRIPTS.claimed, [])))
  }

  async statusOf(ids: readonly string[]): ReturnType<BoardSections['statusOf']> {
    const pages = await Promise.all(splitIntoPages(ids).map((part) => this.#run(SCRIPTS.status, part)))
    return pages.flatMap((page) =>
      toList(page).map((status) => (status === 1 ? 'there' : status === 2 ? 'trashed' : 'gone')),
    )
  }

  async find(uuid: string): Promise<string | undefined> {
    const { session, uuids } = this.#options
    const range = [`[${uuid}:`, `(${uuid};`, 'LIMIT', '0', String(MAX_SAME_UUID)]
    const found = toList(await session().command('zrangebylex', uuids, ...range)).map(toText)
    // A uuid may contain colons. A job that was removed by hand may still be listed here.
    const ids = found.map((name) => name.slice(uuid.length + 1)).filter((id) => !id.includes(':'))
    const statuses = ids.length > 0 ? await this.statusOf(ids) : []
    return ids.find((_, index) => statuses[index] === 'there')
  }

  /** Omits jobs with an invalid score, from which no order can be computed; they would make the whole page fail. */
  #toSummaries(jobs: readonly JobTuple[]): JobSummary[] {
    return jobs.flatMap((each) => {
      const score = Number(each[1])
      if (Number.isSafeInteger(score) && score >= 0) return [toJobSummary(each, score)]
      this.#options.misplaced(each[0])
      return []
    })
  }

  #run(what: Script, args: readonly string[]): Promise<unknown> {
    return this.#options.session().run(what, args)
  }
}

function toScore({ priority, order }: ClaimOrderKey): string {
  return String(rank(priority) * RANK_SCORE + Number(order) - ORDER_EPOCH_US)
}

function toJobSummary([id, , due, claimed, cancelled]: JobTuple, score: number): JobSummary {
  const place = Math.floor(score / RANK_SCORE)
  const order = BigInt(score - place * RANK_SCORE + ORDER_EPOCH_US)
  const priority = PRIORITIES[place] ?? 'NORMAL'
  // Redis and JavaScript write infinity differently.
  const dueAt = due === 'inf' ? Number.POSITIVE_INFINITY : due === '-inf' ? 0 : Number(due)
  return { id, priority, order, dueAt, claimed: claimed === 1, cancelled: cancelled === 1 }
}

function splitIntoPages(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / PAGE_SIZE) }, (_, index) =>
    ids.slice(index * PAGE_SIZE, (index + 1) * PAGE_SIZE),
  )
}

function toText(value: unknown): string {
  return value instanceof Uint8Array ? decodeText(value) : String(value)
}
