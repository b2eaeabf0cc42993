/**
 * What an atom is told while it runs. A signal and a logger cost more than a small task does, and most tasks look at
 * neither: both are made when they are first asked for. When the atom is over it lets go of the signals it followed,
 * which live as long as the claim or the process.
 */
import { abortAfter, type FollowingSignal, followSignals } from '../core/abort.ts'
import { Timeout } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import type { Duration } from '../core/time.ts'
import type { Context } from '../flow/index.ts'

/** What is the same for every atom of a run. */
export type Known = Pick<Context, 'fence' | 'run' | 'job' | 'services'>

export interface ToldOptions {
  /** The kind and name of the atom. */
  readonly what: string
  readonly follows: readonly (AbortSignal | undefined)[]
  readonly log: () => Logger
  readonly deadline?: Duration | undefined
  readonly progress?: ((done: number) => void) | undefined
}

/** A class, not an object with closures: one is made for every atom that runs. */
export class Told implements Context {
  readonly fence: bigint
  readonly run: number
  readonly job: Context['job']
  readonly services: unknown
  readonly #options: ToldOptions
  #following: FollowingSignal | undefined
  #log: Logger | undefined
  #timer: Disposable | undefined
  #over = false

  constructor(known: Known, options: ToldOptions) {
    this.fence = known.fence
    this.run = known.run
    this.job = known.job
    this.services = known.services
    this.#options = options
  }

  get signal(): AbortSignal {
    return this.#follow().signal
  }

  get log(): Logger {
    this.#log ??= this.#options.log()
    return this.#log
  }

  /** A getter, so that it can be taken out of its context as the others can: `(args, { progress }) => …`. */
  get progress(): (done: number) => void {
    return (done) => {
      if (!this.#over) this.#options.progress?.(done)
    }
  }

  /** Lets the time begin. */
  begin(): void {
    const { what, deadline } = this.#options
    if (deadline === undefined) return
    const late = (time: string) => new Timeout(`${what}: not done within ${time}`)
    this.#timer = abortAfter(this.#follow(), deadline, late)
  }

  end(): void {
    this.#over = true
    this.#timer?.[Symbol.dispose]()
    this.#following?.[Symbol.dispose]()
  }

  #follow(): FollowingSignal {
    const { follows } = this.#options
    // Asked for only after the atom was over, it can still say what has fired, but must not begin to listen.
    this.#following ??= followSignals(this.#over ? follows.filter((signal) => signal?.aborted) : follows)
    return this.#following
  }
}
