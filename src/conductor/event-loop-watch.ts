/**
 * Watches whether this process' event loop turns. While it is blocked nobody here can tell the servers that the session
 * lives: blocked for longer than the session's timeout, the process loses every claim, and others take over.
 */
import { monotonic } from '../core/time.ts'

/** Milliseconds between two looks, at most. */
const PERIOD = 1_000

export interface Blocked {
  /** For so many milliseconds nothing ran but what blocked, or the process was stopped. */
  readonly lag: number
  /** In milliseconds, as well: blocked for longer, every claim is lost. */
  readonly sessionTimeout: number
}

/** Calls `blocked`, until it is disposed, each time that the event loop was blocked for half of the session's timeout. */
export function watchEventLoop(options: {
  readonly sessionTimeout: number
  readonly blocked: (blocked: Blocked) => void
}): Disposable {
  const { sessionTimeout, blocked } = options
  const period = Math.min(PERIOD, sessionTimeout / 8)
  let due = monotonic() + period
  const timer = setInterval(() => {
    const lag = Math.round(monotonic() - due)
    due = monotonic() + period
    if (lag >= sessionTimeout / 2) blocked({ lag, sessionTimeout })
  }, period).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
