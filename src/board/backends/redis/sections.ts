/**
 * Parts of a board, for views that hold no more of it. Long ones are read page by page: nobody waits for Redis while it
 * makes one long answer.
 */
import type { BoardSections, JobSummary } from '../../backend.ts'
import type { ClaimOrderKey } from '../../model/claim-order.ts'
import { PRIORITIES, rank } from '../../model/priority.ts'
import type { WindowSize } from '../window-size.ts'
import { script } from './connection.ts'
import { decodeText } from './records.ts'
import { decodeReply, toList } from './replies.ts'
import { CLAIMED_SOURCE, DELAYED_SOURCE, RANGE_SOURCE, STATUS_SOURCE } from './scripts/sections.ts'
import type { RedisSession } from './session.ts'

const SCRIPTS = {
  stretch: script(RANGE_SOURCE),
  resters: script(DELAYED_SOURCE),
  claimed: script(CLAIMED_SOURCE),
  fates: script(STATUS_SOURCE),
}
/** Of jobs that are looked at in one call. */
const PAGE_SIZE = 1_000
/** What is asked for of a uuid: more than one only where somebody has posted it again. */
const MAX_SAME_UUID = 100

/** As scripts make it: see `place` in `scripts/commit.ts`. */
const RANK_SCORE = 2 ** 50
const ORDER_EPOCH_US = 1_577_836_800_000_000

/** As scripts tell a job. */
type JobTuple = readonly [id: string, score: string, dueAt: string, claimed: 0 | 1, cancelled: 0 | 1]

export interface RedisSectionsOptions extends WindowSize {
  readonly session: () => RedisSession
  /** The key of uuids. */
  readonly uuids: string
  /** Called with the id of a job whose place in the claim order is none: it is left out. */
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
    const spots: JobSummary[] = []
    let at = Number.POSITIVE_INFINITY
    for (let from = after ? toScore(after) : '-inf'; ; ) {
      const count = due ? PAGE_SIZE : Math.min(PAGE_SIZE, limit - spots.length)
      const [now, jobs, last] = decodeReply<[number, readonly JobTuple[], string]>(
        await this.#run(SCRIPTS.stretch, [from === '-inf' ? from : `(${from}`, String(count)]),
      )
      at = Math.min(at, Number(now))
      const page = this.#spots(jobs)
      spots.push(...(due ? page.filter(({ claimed, dueAt }) => !claimed && dueAt <= at) : page))
      if (spots.length >= limit) return { spots: spots.slice(0, limit), end: false, at }
      if (last === '') return { spots, end: true, at }
      from = last
    }
  }

  async delayed({ after, limit }: Parameters<BoardSections['delayed']>[0]): Promise<readonly JobSummary[]> {
    return this.#spots(decodeReply<readonly JobTuple[]>(await this.#run(SCRIPTS.resters, [`(${after}`, String(limit)])))
  }

  async claimed(): Promise<readonly JobSummary[]> {
    return this.#spots(decodeReply<readonly JobTuple[]>(await this.#run(SCRIPTS.claimed, [])))
  }

  async statusOf(ids: readonly string[]): ReturnType<BoardSections['statusOf']> {
    const pages = await Promise.all(splitIntoPages(ids).map((part) => this.#run(SCRIPTS.fates, part)))
    return pages.flatMap((page) => toList(page).map((fate) => (fate === 1 ? 'there' : fate === 2 ? 'trashed' : 'gone')))
  }

  async find(uuid: string): Promise<string | undefined> {
    const { session, uuids } = this.#options
    const range = [`[${uuid}:`, `(${uuid};`, 'LIMIT', '0', String(MAX_SAME_UUID)]
    const found = toList(await session().command('zrangebylex', uuids, ...range)).map(toText)
    // A uuid may have colons of its own, and what was taken away by hand has left its name here.
    const ids = found.map((name) => name.slice(uuid.length + 1)).filter((id) => !id.includes(':'))
    const fates = ids.length > 0 ? await this.statusOf(ids) : []
    return ids.find((_, index) => fates[index] === 'there')
  }

  /** Leaves out what has a score that no script gives: nothing could be computed from it, also not for the jobs beside it. */
  #spots(jobs: readonly JobTuple[]): JobSummary[] {
    return jobs.flatMap((each) => {
      const score = Number(each[1])
      if (Number.isSafeInteger(score) && score >= 0) return [toJobSummary(each, score)]
      this.#options.misplaced(each[0])
      return []
    })
  }

  #run(what: (typeof SCRIPTS)[keyof typeof SCRIPTS], args: readonly string[]): Promise<unknown> {
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
  // Redis writes infinity in another way than JavaScript reads it.
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
