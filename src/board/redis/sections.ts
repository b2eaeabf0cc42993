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
      const page = told.map(spotOf)
      spots.push(...(due ? page.filter(({ claimed, dueAt }) => !claimed && dueAt <= at) : page))
      if (spots.length >= limit) return { spots: spots.slice(0, limit), end: false, at }
      if (last === '') return { spots, end: true, at }
      from = last
    }
  }

  async resting({ after, limit }: Parameters<Sections['resting']>[0]): Promise<readonly Spot[]> {
    return decoded<readonly Told[]>(await this.#run(SCRIPTS.resters, [`(${after}`, String(limit)])).map(spotOf)
  }

  async claimed(): Promise<readonly Spot[]> {
    return decoded<readonly Told[]>(await this.#run(SCRIPTS.claimed, [])).map(spotOf)
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

  #run(what: (typeof SCRIPTS)[keyof typeof SCRIPTS], args: readonly string[]): Promise<unknown> {
    return this.#options.session().run(what, args)
  }
}

function scoreOf({ priority, order }: Ordered): string {
  return String(rank(priority) * RANK_SCORE + Number(order) - EPOCH)
}

function spotOf([id, told, dueAt, claimed, cancelled]: Told): Spot {
  const score = Number(told)
  const place = Math.floor(score / RANK_SCORE)
  const order = BigInt(score - place * RANK_SCORE + EPOCH)
  const priority = PRIORITIES[place] ?? 'NORMAL'
  return { id, priority, order, dueAt: Number(dueAt), claimed: claimed === 1, cancelled: cancelled === 1 }
}

function parts(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / PAGE) }, (_, index) => ids.slice(index * PAGE, (index + 1) * PAGE))
}

function text(value: unknown): string {
  return value instanceof Uint8Array ? textOf(value) : String(value)
}
