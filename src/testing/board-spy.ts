/** A spy on a board, of any backend: what happened to which job, and waiting for it. */
import type { Job, JobBoard } from '../board/index.ts'
import { Condition } from '../core/async/abort.ts'
import { InvalidArgument, InvalidState } from '../core/errors.ts'
import type { JobState } from '../core/states.ts'
import { type WaitLimit, withinLimit } from './wait-limit.ts'

/** The state of a job after each event. */
const STATES_BY_EVENT = {
  posted: 'UNCLAIMED',
  claimed: 'CLAIMED',
  abandoned: 'UNCLAIMED',
  consumed: 'COMPLETE',
  trashed: 'TRASHED',
} as const satisfies Record<string, JobState>

/** The name of a board event about a job. */
export type JobEventName = keyof typeof STATES_BY_EVENT

/** An event of a job. */
export interface SpiedEvent {
  readonly event: JobEventName
  readonly job: Job
}

/** The job that a spy waits for, and the time limit. */
export interface SpyOptions extends WaitLimit {
  /** The job whose events count; all jobs by default. */
  readonly of?: Pick<Job, 'uuid'>
}

/** Made by {@link spyOn}. */
export class BoardSpy implements Disposable {
  readonly #board: JobBoard
  readonly #seen: SpiedEvent[] = []
  readonly #unread: SpiedEvent[] = []
  readonly #changed = new Condition()
  readonly #unsubscribe: readonly (() => void)[]

  /** @internal */
  constructor(board: JobBoard) {
    this.#board = board
    this.#unsubscribe = (Object.keys(STATES_BY_EVENT) as JobEventName[]).map((event) =>
      board.on(event, ({ job }) => {
        const seen = { event, job }
        this.#seen.push(seen)
        this.#unread.push(seen)
        this.#changed.notify()
      }),
    )
  }

  /** Everything since it began to spy, in order. */
  get seen(): readonly SpiedEvent[] {
    return [...this.#seen]
  }

  /**
   * Resolves to the job of the next such event: one since the spy began that it has not returned before, or the next to come.
   *
   * @throws Timeout saying what happened instead
   * @example const job = await spy.next('trashed')
   */
  async next(event: JobEventName, options: SpyOptions = {}): Promise<Job> {
    if (!Object.hasOwn(STATES_BY_EVENT, event))
      throw new InvalidArgument(
        `a spy: unknown event ${event} of jobs; use one of ${Object.keys(STATES_BY_EVENT).join(', ')}`,
      )
    const { of } = options
    const isIt = (seen: SpiedEvent) => seen.event === event && (of === undefined || seen.job.uuid === of.uuid)
    const look = async (stop: { signal: AbortSignal }) => {
      let index = this.#unread.findIndex(isIt)
      for (; index < 0; index = this.#unread.findIndex(isIt)) await this.#changed.wait(stop)
      return this.#unread.splice(index, 1)
    }
    const [seen] = await withinLimit(options, look, () => `no job was ${event}; seen: ${this.#describeSeen()}`)
    if (!seen) throw new InvalidState('a spy has lost what it found')
    return seen.job
  }

  /**
   * Resolves when the job is in that state, or has been since it began to spy.
   *
   * @throws InvalidState when it has ended otherwise, with the reason from the trash
   * @throws Timeout saying what happened instead
   * @example await spy.reached(job, 'COMPLETE')
   */
  async reached(job: Job, state: JobState, limit: WaitLimit = {}): Promise<void> {
    const its = () => this.#seen.filter((seen) => seen.job.uuid === job.uuid)
    const reached = () => job.state === state || its().some(({ event }) => STATES_BY_EVENT[event] === state)
    const look = async (stop: { signal: AbortSignal }) => {
      while (!reached()) {
        const last = its().at(-1)?.event
        const end = isEnd(job.state) ? job.state : last && STATES_BY_EVENT[last]
        if (isEnd(end))
          throw new InvalidState(`${job} is ${end}, and never was ${state}${await this.#trashReason(job)}`)
        await this.#changed.wait(stop)
      }
    }
    await withinLimit(limit, look, () => `${job} is ${job.state}, not ${state}; seen of it: ${describeSeen(its())}`)
  }

  [Symbol.dispose](): void {
    for (const leave of this.#unsubscribe) leave()
  }

  #describeSeen(): string {
    return this.#seen.map(({ event, job }) => `${job.name} ${event}`).join(', ') || 'nothing'
  }

  /** Returns the reason in the trash, for an error message. */
  async #trashReason(job: Job): Promise<string> {
    for await (const trashed of this.#board.trashed()) if (trashed.uuid === job.uuid) return `: ${trashed.reason}`
    return ''
  }
}

/**
 * Begins to spy on a board; dispose of the spy at the end.
 *
 * @example
 * using spy = spyOn(board)
 * const job = await board.post('resize', { path: 'cat.png' })
 * await spy.reached(job, 'CLAIMED')
 */
export function spyOn(board: JobBoard): BoardSpy {
  if (typeof Object(board).on !== 'function')
    throw new InvalidArgument("spyOn takes an open board, as in spyOn(await openBoard('memory:'))")
  return new BoardSpy(board)
}

function isEnd(state: JobState | undefined): state is 'COMPLETE' | 'TRASHED' {
  return state === 'COMPLETE' || state === 'TRASHED'
}

function describeSeen(seen: readonly SpiedEvent[]): string {
  return seen.map(({ event }) => event).join(', ') || 'nothing'
}
