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

export interface Told<Known> extends Disposable {
  readonly context: Context & Known
}

export interface ToldOptions<Known> {
  /** The kind and name of the atom. */
  readonly what: string
  readonly known: Known
  readonly follows: readonly (AbortSignal | undefined)[]
  readonly log: () => Logger
  readonly deadline?: Duration | undefined
  readonly progress?: ((done: number) => void) | undefined
}

export function told<Known extends Pick<Context, 'fence' | 'run' | 'job'>>(options: ToldOptions<Known>): Told<Known> {
  const { what, known, follows, deadline, progress } = options
  let following: FollowingSignal | undefined
  let log: Logger | undefined
  let over = false
  const follow = () => {
    // Asked for only after the atom was over, it can still say what has fired, but must not begin to listen.
    following ??= followSignals(over ? follows.filter((signal) => signal?.aborted) : follows)
    return following
  }
  const timer = deadline === undefined ? undefined : abortAfter(follow(), deadline, late(what))
  return {
    context: {
      ...known,
      get signal() {
        return follow().signal
      },
      get log() {
        log ??= options.log()
        return log
      },
      progress: (done) => {
        if (!over) progress?.(done)
      },
    },
    [Symbol.dispose]: () => {
      over = true
      timer?.[Symbol.dispose]()
      following?.[Symbol.dispose]()
    },
  }
}

function late(what: string): (time: string) => Timeout {
  return (time) => new Timeout(`${what}: not done within ${time}`)
}
