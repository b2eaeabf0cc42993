/** Removes what is old again and again, as a conductor does with logbooks and with the trash. */
import { rejectOnAbort } from '../core/async/abort.ts'
import type { Logger } from '../core/log.ts'
import { sleep } from '../core/time.ts'

/** The shortest and the longest pause between two passes: short for any sensible age, and long enough to cost nothing. */
const PERIOD_MS = { least: 1_000, most: 3_600_000 } as const
/** The pause while nothing is removed: an age can be set at run time. */
const IDLE_PERIOD_MS = 300_000

export interface PeriodicRemoval {
  /** Returns the shortest age at which something is removed now, in milliseconds; infinite if nothing is. */
  readonly age: () => number
  /** The name of the things that are removed, for the log: `logbooks`. */
  readonly what: string
  readonly log: Logger
  /** Removes what is old now, and returns how much that was. */
  readonly pass: (signal: AbortSignal) => Promise<number>
}

/**
 * Makes passes until the signal fires, and logs one line for each that has removed something. The pauses differ, so that conductors that
 * started together do not run at once.
 */
export async function removePeriodically(
  { age, what, log, pass }: PeriodicRemoval,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const isIdle = age() === Number.POSITIVE_INFINITY
    try {
      const removed = isIdle ? 0 : await rejectOnAbort(pass(signal), signal)
      if (removed > 0) log.info({ removed }, `old ${what} removed`)
    } catch (error) {
      if (signal.aborted) return
      log.warn({ err: error }, `old ${what} could not be removed; the conductor tries again later`)
    }
    const period = isIdle ? IDLE_PERIOD_MS : Math.max(PERIOD_MS.least, Math.min(age(), PERIOD_MS.most))
    await sleep(period * (0.5 + Math.random() / 2), { signal }).catch(() => undefined)
  }
}
