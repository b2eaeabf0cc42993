/** A place with several boards and what a sequence of operations did to it, told in the same words on every backend. */
import type { Claim, Job, JobBoard, PostOptions, Priority } from '../../../src/board/index.ts'
import { JobboardError } from '../../../src/core/errors.ts'
import { nextSession, whenLost } from '../../board/events.ts'
import { all, refresh } from '../../board/jobs.ts'
import type { BoardPlace } from '../../contract/board.ts'

const BOARDS = 3

/** Numbers pick one of what there is by then. */
export type Step =
  | {
      readonly kind: 'post'
      readonly board: number
      readonly key: string | undefined
      readonly exclusive: readonly string[]
      readonly shared: readonly string[]
      readonly priority: Priority
    }
  | { readonly kind: 'claim next'; readonly board: number; readonly max: number }
  | { readonly kind: 'claim'; readonly board: number; readonly which: number }
  | { readonly kind: 'settle'; readonly which: number; readonly how: Settle; readonly failed: boolean }
  | { readonly kind: 'settle job'; readonly board: number; readonly which: number; readonly how: Settle }
  | { readonly kind: 'cancel'; readonly board: number; readonly which: number }
  | { readonly kind: 'pause' | 'resume' | 'expire'; readonly board: number }
  | { readonly kind: 'restore' | 'purge'; readonly board: number; readonly which: number }

export type Settle = 'consume' | 'abandon' | 'trash'

export class BoardModel implements AsyncDisposable {
  readonly #place: BoardPlace
  readonly #boards: readonly JobBoard[]
  readonly #jobs: Job[] = []
  readonly #claims: Claim[] = []
  #ordered = true

  private constructor(place: BoardPlace, boards: readonly JobBoard[]) {
    this.#place = place
    this.#boards = boards
  }

  static async begin(place: BoardPlace): Promise<BoardModel> {
    const names = Array.from({ length: BOARDS }, (_, number) => `board ${number}`)
    return new BoardModel(place, await Promise.all(names.map((who) => place.open({ who }))))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#boards.map((board) => board.close()))
    await this.#place[Symbol.asyncDispose]()
  }

  /** What came of it, or the code of its refusal. Afterwards every board has heard of it. */
  async take(step: Step): Promise<unknown> {
    try {
      return await this.#do(step)
    } catch (error) {
      if (error instanceof JobboardError) return error.code
      throw error
    } finally {
      // The first makes sure that what was asked for is heard, the second that it was looked into.
      for (let round = 0; round < 2; round++) await Promise.all(this.#boards.map(refresh))
    }
  }

  /** Everything that can be seen of it. */
  async look(): Promise<unknown> {
    const boards = await Promise.all(
      this.#boards.map(async (board) => ({
        paused: board.paused,
        jobs: await Promise.all((await all(board.jobs())).map((job) => seen(board, job))),
        trash: (await all(board.trashed())).map(({ name, who, reason, attempts }) => {
          return { name, who, reason, attempts: attempts.map(({ at: _, ...attempt }) => attempt) }
        }),
        claimable: await claimable(board),
      })),
    )
    const claims = this.#claims.map(({ job, who, run, settled, lost, cancelled }) => {
      return { job: job.name, who, run, settled, lost: lost.aborted, cancelled: cancelled.aborted }
    })
    return { boards, claims, states: this.#jobs.map(({ name, state }) => [name, state]) }
  }

  /** Whether every claim has had a larger fence than all that were asked for before it. */
  get ordered(): boolean {
    return this.#ordered
  }

  #do(step: Step): Promise<unknown> {
    switch (step.kind) {
      case 'post':
        return this.#post(step)
      case 'claim next':
        return this.#claimNext(this.#board(step), step.max)
      case 'claim':
        return this.#claim(this.#board(step), this.#pick(this.#jobs, step.which))
      case 'settle':
        return this.#settle(this.#pick(this.#claims, step.which), step)
      case 'settle job':
        return this.#settleJob(this.#board(step), this.#pick(this.#jobs, step.which), step.how)
      case 'cancel':
        return this.#cancel(this.#board(step), this.#pick(this.#jobs, step.which))
      case 'pause':
      case 'resume':
        return this.#board(step)[step.kind]()
      case 'expire':
        return this.#expire(this.#board(step))
      case 'restore':
      case 'purge':
        return this.#fromTrash(this.#board(step), step)
    }
  }

  async #post(step: Extract<Step, { kind: 'post' }>): Promise<unknown> {
    const { key, exclusive, shared, priority } = step
    const name = `job ${this.#jobs.length}`
    const options: PostOptions = { name, priority, resources: { exclusive, shared }, maxAttempts: 2 }
    const job = await this.#board(step).post('flow', {}, key === undefined ? options : { ...options, key })
    if (job.created) this.#jobs.push(job)
    return [job.created, job.name]
  }

  /** Those over a limit go to the trash on the way, and there may be nothing left then. */
  async #claimNext(board: JobBoard, max: number): Promise<unknown> {
    await refresh(board)
    return this.#granted(await board.claimNext({ max, timeout: 0 }).catch(() => []))
  }

  async #claim(board: JobBoard, job: Job | undefined): Promise<unknown> {
    return job && this.#granted([await board.claim(job)])
  }

  #granted(claims: readonly Claim[]): unknown {
    const newest = this.#claims.reduce((found, { fence }) => (fence > found ? fence : found), -1n)
    this.#ordered &&= claims.every(({ fence }) => fence > newest)
    this.#claims.push(...claims)
    return claims.map(({ job, run }) => [job.name, run])
  }

  async #settle(claim: Claim | undefined, { how, failed }: { how: Settle; failed: boolean }): Promise<unknown> {
    if (how === 'abandon') return claim?.abandon({ failed, reason: 'given back' })
    return how === 'trash' ? claim?.trash({ reason: 'trashed' }) : claim?.consume()
  }

  async #settleJob(board: JobBoard, job: Job | undefined, how: Settle): Promise<unknown> {
    return job && board[how](job)
  }

  async #cancel(board: JobBoard, job: Job | undefined): Promise<unknown> {
    return job && board.cancel(job, { reason: 'not wanted' })
  }

  async #expire(board: JobBoard): Promise<unknown> {
    const held = this.#claims.filter(({ who, settled, lost }) => who === board.who && !settled && !lost.aborted)
    const back = nextSession(board)
    await this.#place.expire(board)
    await Promise.all([back, ...held.map(whenLost)])
    return held.length
  }

  async #fromTrash(board: JobBoard, step: Extract<Step, { kind: 'restore' | 'purge' }>): Promise<unknown> {
    const entry = this.#pick(await all(board.trashed()), step.which)
    if (!entry) return undefined
    await board[step.kind](entry)
    if (step.kind === 'restore') {
      await refresh(board)
      this.#jobs.push(await board.find(entry.uuid))
    }
    return entry.name
  }

  #board({ board }: { readonly board: number }): JobBoard {
    const found = this.#boards[board % BOARDS]
    if (!found) throw new Error('there is no such board')
    return found
  }

  #pick<T>(items: readonly T[], which: number): T | undefined {
    return items[which % items.length]
  }
}

async function seen(board: JobBoard, job: Job): Promise<unknown> {
  const { name, state } = job
  const owner = await board.findOwner(job)
  const waiting = (await board.waitingFor(job))?.kind
  if (state === 'CLAIMED') return { name, state, owner, waiting }
  const attempts = job.attempts.map(({ at: _, ...attempt }) => attempt)
  return { name, state, owner, waiting, runs: job.runs, attempts }
}

/** At this moment, as far as it has heard. */
async function claimable(board: JobBoard): Promise<boolean> {
  return board.wait({ timeout: 0 }).then(
    () => true,
    () => false,
  )
}
