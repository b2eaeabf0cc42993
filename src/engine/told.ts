/**
 * What a task is told while it runs. A signal and a logger cost more than a small task does, and most tasks look at
 * neither: both are made when they are first asked for. When the task is over it lets go of the signals it followed,
 * which live as long as the claim or the process.
 */
import { type FollowingSignal, followSignals } from '../core/abort.ts'
import type { Logger } from '../core/log.ts'
import type { Context } from '../flow/index.ts'

export interface Told<Known> extends Disposable {
  readonly context: Context & Known
}

export function told<Known extends Pick<Context, 'fence' | 'run' | 'job'>>(options: {
  readonly known: Known
  readonly follows: readonly (AbortSignal | undefined)[]
  readonly log: () => Logger
}): Told<Known> {
  const { known, follows } = options
  let following: FollowingSignal | undefined
  let log: Logger | undefined
  let over = false
  return {
    context: {
      ...known,
      get signal() {
        // Asked for only after the task was over, it can still say what has fired, but must not begin to listen.
        following ??= followSignals(over ? follows.filter((signal) => signal?.aborted) : follows)
        return following.signal
      },
      get log() {
        log ??= options.log()
        return log
      },
    },
    [Symbol.dispose]: () => {
      over = true
      following?.[Symbol.dispose]()
    },
  }
}
