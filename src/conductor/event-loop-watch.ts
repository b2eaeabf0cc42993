/**
 * Watches whether this process's event loop is blocked. A blocked process cannot send heartbeats for its session:
 * blocked for longer than the session's timeout, it loses every claim, and others take over.
 */
import { monotonic, startInterval } from '../core/time.ts'
import type { TaskOfJob, TaskWatch } from './runs/task-watch.ts'

/** The longest period between two checks. */
const MAX_CHECK_PERIOD_MS = 1_000

export interface EventLoopBlocked {
  /** The duration of the block in milliseconds. Nothing but the blocking code ran, or the process was stopped. */
  readonly lag: number
  /**
   * The tasks that ran when the block began, the newest first, at most five: one of them blocks, unless the process was
   * stopped.
   */
  readonly tasks: readonly TaskOfJob[]
  /** The session's timeout in milliseconds: a longer block loses every claim. */
  readonly sessionTimeout: number
}

/**
 * Calls `blocked`, until it is disposed, each time that the event loop was blocked for half of the session's timeout.
 */
export function watchEventLoop(options: {
  readonly sessionTimeout: number
  readonly tasks: Pick<TaskWatch, 'since' | 'forgetEnded'>
  readonly blocked: (blocked: EventLoopBlocked) => void
  /** The monotonic clock, in milliseconds; the clock of the process by default. */
  readonly now?: () => number
}): Disposable {
  const { sessionTimeout, tasks, blocked, now = monotonic } = options
  const period = Math.min(MAX_CHECK_PERIOD_MS, sessionTimeout / 8)
  let due = now() + period
  const timer = startInterval(() => {
    const lag = Math.round(now() - due)
    // The check may have been late before the block began. A task that began in the second half of the block cannot
    // have caused it.
    if (lag >= sessionTimeout / 2) blocked({ lag, tasks: tasks.since(due + lag / 2), sessionTimeout })
    else tasks.forgetEnded()
    due = now() + period
  }, period).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/** Returns the warning for the log. */
export function formatBlocked({ lag, tasks }: EventLoopBlocked): string {
  const named = tasks.map(({ task, job, name }) => `task ${task} of job ${job} (${name})`).join('; or ')
  const suspects = named === '' ? ', or the process was stopped' : `, by ${named}, or the process was stopped`
  const advice = 'work that computes belongs in a worker thread or a child process'
  return `the event loop was blocked for ${(lag / 1_000).toFixed(1)} s${suspects}: ${advice}`
}
