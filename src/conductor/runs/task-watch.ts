/**
 * Tracks the running tasks of a conductor, so that a blocked event loop and a job that does not stop can be traced to a
 * task.
 */
import type { Performing } from '../../engine/index.ts'

export interface TaskOfJob {
  /** The uuid of the job. */
  readonly job: string
  /** The name of the job. */
  readonly name: string
  readonly task: string
}

interface RunningTask extends TaskOfJob {
  readonly performing: Performing
  /** The start in milliseconds on the monotonic clock. */
  readonly since: number
}

/**
 * The maximum number of tasks that are named: the cause is probably among the newest, and a log line must stay
 * readable.
 */
const MAX_NAMED_TASKS = 5

export class TaskWatch {
  readonly #now: () => number
  readonly #running = new Set<RunningTask>()
  /** The tasks that have ended since the last check and ran for at least the minimum. */
  #ended: RunningTask[] = []
  #minimum: number

  /**
   * @param options.minimum the shortest run time in milliseconds of a task that is remembered after its end
   * @param options.now the monotonic clock
   */
  constructor(options: { readonly minimum: number; readonly now: () => number }) {
    this.#minimum = options.minimum
    this.#now = options.now
  }

  /** Lowers the minimum: shorter tasks are remembered, too, if they ran for this many milliseconds. */
  lowerMinimum(minimum: number): void {
    this.#minimum = Math.min(this.#minimum, minimum)
  }

  /** Notes that a task begins to run; the returned function notes that it has ended. */
  begin(task: TaskOfJob, how: Performing): () => void {
    const running = { job: task.job, name: task.name, task: task.task, performing: how, since: this.#now() }
    this.#running.add(running)
    return () => {
      if (this.#running.delete(running) && this.#now() - running.since >= this.#minimum) this.#ended.push(running)
    }
  }

  /** Returns the tasks of a job whose `execute` runs now. */
  executing(job: string): string[] {
    return [...this.#running]
      .filter((each) => each.job === job && each.performing === 'execute')
      .map(({ task }) => task)
  }

  /**
   * Returns the tasks that may have blocked the event loop from that time until now: the tasks that ran then, the newest
   * first. Forgets the tasks that had ended since the last call.
   */
  since(instant: number): TaskOfJob[] {
    const candidates = [...this.#ended, ...this.#running].filter(({ since }) => since <= instant)
    this.#ended = []
    return candidates
      .sort((a, b) => b.since - a.since)
      .slice(0, MAX_NAMED_TASKS)
      .map(({ job, name, task }) => ({ job, name, task }))
  }

  /** Forgets the tasks that have ended, because the event loop is not blocked. */
  forgetEnded(): void {
    if (this.#ended.length > 0) this.#ended = []
  }
}
