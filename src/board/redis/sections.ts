/**
 * Parts of a board, for views that hold no more of it. Long ones are read page by page: nobody waits for Redis while it
 * makes one long answer.
 */
import type { Sections, Spot } from '../backend.ts'
import type { Ordered } from '../claim-order.ts'
import { PRIORITIES, rank } from '../priority.ts'
import type { WindowSize } from '../window-size.ts'
import { script } from './connection.ts'
import { textOf } from './records.ts'
import { decoded, listOf } from './replies.ts'
import { CLAIMED, FATES, RESTERS, STRETCH } from './scripts/sections.ts'
import type { Session } from './session.ts'

const SCRIPTS = {
  stretch: script(STRETCH),
  resters: script(RESTERS),
  claimed: script(CLAIMED),
  fates: script(FATES),
}
/** Of jobs that are looked at in one call. */
const PAGE = 1_000
/** What is asked for of a uuid: more than one only where somebody has posted it again. */
const SAME_UUID = 100

/** As scripts make it: see `place` in `scripts/commit.ts`. */
const RANK_SCORE = 2 ** 50
const EPOCH = 1_577_836_800_000_000

/** As scripts tell a job. */
type Told = readonly [id: string, score: string, dueAt: string, claimed: 0 | 1, cancelled: 0 | 1]

export interface BoardSectionsOptions extends WindowSize {
  readonly session: () => Session
  /** The key of uuids. */
  readonly uuids: string
  /** Called with the id of a job whose place in the claim order is none: it is left out. */
  readonly misplaced: (id: string) => void
}

export class BoardSections implements Sections {
  readonly window: number
  readonly windowBytes: number
  readonly #options: BoardSectionsOptions

  constructor(options: BoardSectionsOptions) {
    this.window = options.window
    this.windowBytes = options.windowBytes
    this.#options = options
  }

  async stretch({ after, limit, due }: Parameters<Sections['stretch']>[0]): ReturnType<Sections['stretch']> {
    const spots: Spot[] = []
    let at = Number.POSITIVE_INFINITY
    for (let from = after ? scoreOf(after) : '-inf'; ; ) {
      const count = due ? PAGE : Math.min(PAGE, limit - spots.length)
      const [now, told, last] = decoded<[number, readonly Told[], string]>(
        await this.#run(SCRIPTS.stretch, [from === '-inf' ? from : `(${from}`, String(count)]),
      )
      at = Math.min(at, Number(now))
      const page = this.#spots(told)
      spots.push(...(due ? page.filter(({ claimed, dueAt }) => !claimed && dueAt <= at) : page))
      if (spots.length >= limit) return { spots: spots.slice(0, limit), end: false, at }
      if (last === '') return { spots, end: true, at }
      from = last
    }
  }

  async resting({ after, limit }: Parameters<Sections['resting']>[0]): Promise<readonly Spot[]> {
    return this.#spots(decoded<readonly Told[]>(await this.#run(SCRIPTS.resters, [`(${after}`, String(limit)])))
  }

  async claimed(): Promise<readonly Spot[]> {
    return this.#spots(decoded<readonly Told[]>(await this.#run(SCRIPTS.claimed, [])))
  }

  async fates(ids: readonly string[]): ReturnType<Sections['fates']> {
    const pages = await Promise.all(parts(ids).map((part) => this.#run(SCRIPTS.fates, part)))
    return pages.flatMap((page) => listOf(page).map((fate) => (fate === 1 ? 'there' : fate === 2 ? 'trashed' : 'gone')))
  }

  async find(uuid: string): Promise<string | undefined> {
    const { session, uuids } = this.#options
    const range = [`[${uuid}:`, `(${uuid};`, 'LIMIT', '0', String(SAME_UUID)]
    const found = listOf(await session().ask('zrangebylex', uuids, ...range)).map(text)
    // A uuid may have colons of its own, and what was taken away by hand has left its name here.
    const ids = found.map((name) => name.slice(uuid.length + 1)).filter((id) => !id.includes(':'))
    const fates = ids.length > 0 ? await this.fates(ids) : []
    return ids.find((_, index) => fates[index] === 'there')
  }

  /** Leaves out what has a score that no script gives: nothing could be computed from it, also not for the jobs beside it. */
  #spots(told: readonly Told[]): Spot[] {
    return told.flatMap((each) => {
      const score = Number(each[1])
      if (Number.isSafeInteger(score) && score >= 0) return [spotOf(each, score)]
      this.#options.misplaced(each[0])
      return []
    })
  }

  #run(what: (typeof SCRIPTS)[keyof typeof SCRIPTS], args: readonly string[]): Promise<unknown> {
    return this.#options.session().run(what, args)
  }
}

function scoreOf({ priority, order }: Ordered): string {
  return String(rank(priority) * RANK_SCORE + Number(order) - EPOCH)
}

function spotOf([id, , due, claimed, cancelled]: Told, score: number): Spot {
  const place = Math.floor(score / RANK_SCORE)
  const order = BigInt(score - place * RANK_SCORE + EPOCH)
  const priority = PRIORITIES[place] ?? 'NORMAL'
  // Redis writes infinity in another way than JavaScript reads it.
  const dueAt = due === 'inf' ? Number.POSITIVE_INFINITY : due === '-inf' ? 0 : Number(due)
  return { id, priority, order, dueAt, claimed: claimed === 1, cancelled: cancelled === 1 }
}

function parts(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / PAGE) }, (_, index) => ids.slice(index * PAGE, (index + 1) * PAGE))
}

function text(value: unknown): string {
  return value instanceof Uint8Array ? textOf(value) : String(value)
}
