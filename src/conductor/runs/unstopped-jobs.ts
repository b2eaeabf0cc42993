/**
 * Detects jobs whose stop signal has fired, because their deadline has passed or they were cancelled, while a task
 * still runs. The task keeps its slot, and nothing else would report it.
 */
import type { Job } from '../../board/index.ts'
import { onAbort } from '../../core/async/abort.ts'
import type { Stoppable } from '../../core/async/abort-flag.ts'
import { describeError } from '../../core/failure.ts'
import type { AlarmClock } from '../../core/time.ts'
import type { TaskWatch } from './task-watch.ts'

/** The time after its signal in which a task may stop without a warning. */
const STOP_GRACE_MS = 10_000

/** The stop signal of a job fired some time ago, and tasks of it still execute. */
export interface StopIgnored {
  readonly job: Job
  readonly run: number
  /** The names of the tasks that still execute. */
  readonly tasks: readonly string[]
  /** The reason of the stop signal. */
  readonly reason: string
}

/** Calls `onStopIgnored` once, unless it is disposed first, or no task of the job executes any more by then. */
export function watchStop(options: {
  readonly job: Job
  readonly run: number
  /** Fires when the job has to stop. */
  readonly stop: Stoppable
  readonly tasks: Pick<TaskWatch, 'executing'>
  readonly clock: AlarmClock
  readonly onStopIgnored: (event: StopIgnored) => void
}): Disposable {
  const { job, run, stop, tasks, clock, onStopIgnored } = options
  let alarm: Disposable | undefined
  const ring = () => {
    const executing = tasks.executing(job.uuid)
    if (executing.length > 0) onStopIgnored({ job, run, tasks: executing, reason: describeError(stop.reason) })
  }
  const fired = () => {
    alarm = clock.alarm(STOP_GRACE_MS, { kind: 'deadline', ring })
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
  return `${job} must stop (${reason}), but ${what} ctx.signal: the slot stays taken until then`
}
