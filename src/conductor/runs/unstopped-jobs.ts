/**
 * Detects jobs that have to stop, because a deadline has passed or they were cancelled, while a task still runs. The task keeps its
 * slot, and nothing else would report it.
 */
import type { Job } from '../../board/index.ts'
import { onAbort } from '../../core/async/abort.ts'
import type { Stoppable } from '../../core/async/abort-flag.ts'
import { Timeout } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import type { AlarmClock } from '../../core/time.ts'

/** The time after its stop signal after which a task that still runs is reported. */
const STOP_IGNORED_AFTER_MS = 10_000

/** Tasks of a job still run ten seconds after its stop signal. */
export interface StopIgnored {
  readonly job: Job
  readonly run: number
  /** The names of the tasks that still execute. */
  readonly tasks: readonly string[]
  /** The reason of the stop signal. */
  readonly reason: string
}

/** The run of a job that is watched. */
export interface JobStopWatchOptions {
  readonly job: Job
  readonly run: number
  readonly clock: AlarmClock
  /** Called once for the run. */
  readonly onStopIgnored: (event: StopIgnored) => void
  /** Called when a deadline was ignored: the job must not wait for the task. */
  readonly giveBack: (reason: Timeout) => void
}

/** Watches one signal of the run until the result is disposed. */
export type JobStopWatch = (
  stop: Stoppable,
  options: {
    /** Returns the tasks that still run. */
    readonly running: () => readonly string[]
    /** Whether the signal counts only if it has fired because of a deadline. */
    readonly onlyDeadline?: boolean
  },
) => Disposable

/** Returns a function that watches a signal of a run, and reports tasks that still run ten seconds after it has fired. */
export function jobStopWatch({ job, run, clock, onStopIgnored, giveBack }: JobStopWatchOptions): JobStopWatch {
  let isReported = false
  return (stop, { running, onlyDeadline = false }) => {
    const onIgnored = () => {
      const { reason } = stop
      const tasks = running()
      if (tasks.length === 0 || (onlyDeadline && !(reason instanceof Timeout))) return
      if (!isReported) onStopIgnored({ job, run, tasks, reason: describeError(reason) })
      isReported = true
      if (reason instanceof Timeout) giveBack(reason)
    }
    return alarmAfter(stop, { clock, ring: onIgnored })
  }
}

/** Calls `ring` ten seconds after the signal has fired, unless the result is disposed first. */
function alarmAfter(
  stop: Stoppable,
  { clock, ring }: { readonly clock: AlarmClock; readonly ring: () => void },
): Disposable {
  let alarm: Disposable | undefined
  const fired = () => {
    alarm = clock.alarm(STOP_IGNORED_AFTER_MS, { kind: 'deadline', ring })
  }
  const leave = stop.aborted ? () => undefined : onAbort(stop, fired)
  if (stop.aborted) fired()
  return {
    [Symbol.dispose]: () => {
      leave()
      alarm?.[Symbol.dispose]()
    },
  }
}

/** Returns the warning for the log. */
export function formatStopIgnored({ job, tasks, reason }: StopIgnored): string {
  const what = tasks.length === 1 ? `task ${tasks[0]} ignores` : `tasks ${tasks.join(', ')} ignore`
  return `${job} must stop (${reason}), but ${what} ctx.signal: the slot stays taken until ${tasks.length === 1 ? 'it ends' : 'they end'}`
}
