/**
 * Notices jobs that were told to stop, because their deadline has passed or somebody has cancelled them, while a task of
 * theirs goes on: its slot stays taken, and nothing else would say so.
 */
import type { Job } from '../../board/index.ts'
import type { AlarmClock } from '../../core/alarm-clock.ts'
import { onAbort } from '../../core/async/abort.ts'
import type { Stoppable } from '../../core/async/stop.ts'
import { describeError } from '../../core/failure.ts'
import type { TaskWatch } from './task-watch.ts'

/** How long after its signal a task may take to stop before that is worth a warning. */
const STOP_GRACE_MS = 10_000

/** A job was told to stop some time ago, and tasks of it still execute. */
export interface StopIgnored {
  readonly job: Job
  readonly run: number
  /** The names of the tasks that execute. */
  readonly tasks: readonly string[]
  /** Why it was told to stop. */
  readonly reason: string
}

/** Calls `stopIgnored` once, unless it is disposed before, or nothing of the job executes any more by then. */
export function watchStop(options: {
  readonly job: Job
  readonly run: number
  /** Fires when the job has to stop. */
  readonly stop: Stoppable
  readonly tasks: Pick<TaskWatch, 'executing'>
  readonly clock: AlarmClock
  readonly onStopIgnored: (unheeded: StopIgnored) => void
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
  const what = tasks.length === 1 ? `task ${tasks[0]} does` : `tasks ${tasks.join(', ')} do`
  return `${job} was told to stop (${reason}), and ${what} not heed ctx.signal: its slot stays taken until then`
}
