/**
 * Reads parts of a board for views that hold only a window of it. Long parts are read in pages, so that no client waits while
 * Redis builds one long answer.
 */
import { InvalidPosting } from '../../../core/errors.ts'
import { shortenText } from '../../../core/texts.ts'
import type { BackendSections, JobSummary, QueueCount } from '../../contract/index.ts'
import { type ClaimOrderKey, PRIORITIES, rank } from '../../model/claim-order.ts'
import type { RedisBoard } from './commit/board.ts'
import { decodeReply, toList, toTexts } from './store/replies.ts'
import { SCRIPTS } from './store/scripts.ts'

/** The number of jobs that one call reads. */
const PAGE_SIZE = 1_000
/** Limit of the jobs that are read for one uuid: there are several only if the uuid was posted again. */
const MAX_SAME_UUID = 100

/** The factor of the rank in a score; `order` in `scripts/shared/steps.lua` computes scores with it. */
const RANK_SCORE = 2 ** 50
const ORDER_EPOCH_US = 1_577_836_800_000_000

/** The summary of a job as the scripts return it. */
type JobTuple = readonly [
  ...[id: string, score: string, dueAt: string, claimed: 0 | 1, cancelled: 0 | 1, queue: string],
  holds?: 0 | 1,
]

export class RedisSections implements BackendSections {
  readonly window: number
  readonly windowBytes: number
  readonly #board: RedisBoard

  constructor(board: RedisBoard) {
    this.window = board.location.window
    this.windowBytes = board.location.windowBytes
    this.#board = board
  }

  async range({
    queue = '',
    after,
    limit,
    due,
  }: Parameters<BackendSections['range']>[0]): ReturnType<BackendSections['range']> {
    const summaries: JobSummary[] = []
    let at = Number.POSITIVE_INFINITY
    for (let from = after ? toScore(after) : '-inf'; ; ) {
      const count = due ? PAGE_SIZE : Math.min(PAGE_SIZE, limit - summaries.length)
      const [now, jobs, last] = decodeReply<[number, readonly JobTuple[], string]>(
        await this.#board.run(SCRIPTS.range, [from === '-inf' ? from : `(${from}`, String(count), queue]),
      )
      at = Math.min(at, Number(now))
      const page = this.#toSummaries(jobs)
      summaries.push(...(due ? page.filter(({ claimed, dueAt }) => !claimed && dueAt <= at) : page))
      if (summaries.length >= limit) return { jobs: summaries.slice(0, limit), end: false, at }
      if (last === '') return { jobs: summaries, end: true, at }
      from = last
    }
  }

  async delayed({ queues, after, limit }: Parameters<BackendSections['delayed']>[0]): Promise<readonly JobSummary[]> {
    const parts = await Promise.all((queues ?? ['']).map((queue) => this.#delayedOf(queue, { after, limit })))
    if (parts.length === 1) return parts[0] ?? []
    return parts
      .flat()
      .sort((a, b) => a.dueAt - b.dueAt)
      .slice(0, limit)
  }

  /**
   * Reads the delayed jobs of a queue; of all queues with an empty name. For the default queue, jobs of other queues are visited, too: then it
   * reads on with the due time of the last one, since several jobs may have the same.
   */
  async #delayedOf(
    queue: string,
    { after, limit }: { readonly after: number; readonly limit: number },
  ): Promise<JobSummary[]> {
    const found = new Map<string, JobSummary>()
    let lastCount = 0
    for (let from = `(${after}`, count = limit; ; ) {
      const answer = await this.#board.run(SCRIPTS.delayed, [from, String(count), queue, String(limit)])
      const [jobs, visited, last] = decodeReply<[readonly JobTuple[], number, string]>(answer)
      for (const summary of this.#toSummaries(jobs)) found.set(summary.id, summary)
      if (found.size >= limit || visited < count) return [...found.values()].slice(0, limit)
      if (from === last && found.size === lastCount) count *= 2
      lastCount = found.size
      from = last
    }
  }

  async queues(): Promise<readonly QueueCount[]> {
    const words = decodeReply<readonly (string | number)[]>(await this.#board.run(SCRIPTS.queues, []))
    return Array.from({ length: words.length / 2 }, (_, index) => ({
      queue: String(words[2 * index]),
      jobs: Number(words[2 * index + 1]),
    }))
  }

  async claimed(): Promise<readonly JobSummary[]> {
    return this.#toSummaries(decodeReply<readonly JobTuple[]>(await this.#board.run(SCRIPTS.claimed, [])))
  }

  async statusOf(ids: readonly string[]): ReturnType<BackendSections['statusOf']> {
    const pages = await Promise.all(splitIntoPages(ids).map((part) => this.#board.run(SCRIPTS.status, part)))
    return pages.flatMap((page) =>
      toList(page).map((status) => (status === 1 ? 'there' : status === 2 ? 'trashed' : 'gone')),
    )
  }

  async find(uuid: string): Promise<string | undefined> {
    const range = [`[${uuid}:`, `(${uuid};`, 'LIMIT', '0', String(MAX_SAME_UUID)]
    const found = toTexts(await this.#board.command('zrangebylex', 'uuids', ...range))
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
      this.#reportMisplaced(each[0])
      return []
    })
  }

  #reportMisplaced(id: string): void {
    const what = `${shortenText(id)} has an invalid score in ${this.#board.layout.key('order')}`
    this.#board.reportOnce(id, new InvalidPosting(`${what}; it is not claimed here, remove it`))
  }
}

function toScore({ priority, order }: ClaimOrderKey): string {
  return String(rank(priority) * RANK_SCORE + Number(order) - ORDER_EPOCH_US)
}

function toJobSummary([id, , due, claimed, cancelled, queue, holds]: JobTuple, score: number): JobSummary {
  const priorityRank = Math.floor(score / RANK_SCORE)
  const order = BigInt(score - priorityRank * RANK_SCORE + ORDER_EPOCH_US)
  const priority = PRIORITIES[priorityRank] ?? 'NORMAL'
  // Redis and JavaScript write infinity differently.
  const dueAt = due === 'inf' ? Number.POSITIVE_INFINITY : due === '-inf' ? 0 : Number(due)
  const summary = { id, priority, order, dueAt, claimed: claimed === 1, cancelled: cancelled === 1 }
  if (queue === '' && holds !== 1) return summary
  return { ...summary, ...(queue === '' ? {} : { queue }), holds: holds === 1 }
}

function splitIntoPages(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / PAGE_SIZE) }, (_, index) =>
    ids.slice(index * PAGE_SIZE, (index + 1) * PAGE_SIZE),
  )
}
