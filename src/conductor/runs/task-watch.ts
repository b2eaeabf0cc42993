/**
 * Knows which tasks of a conductor run, so that a blocked event loop and a job that does not stop can be traced to a task.
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
  /** In milliseconds on the monotonic clock. */
  readonly since: number
}

/** How many tasks are named at most: one of the first is to blame in all likelihood, and a log line has to stay readable. */
const MAX_NAMED_TASKS = 5

export class TaskWatch {
  readonly #now: () => number
  readonly #running = new Set<RunningTask>()
  /** What has ended since the last look and ran for long enough to matter. */
  #ended: RunningTask[] = []
  readonly #minimum: number

  /**
   * @param options.minimum of a task that has ended it is remembered only if it ran for so long, in milliseconds
   * @param options.now the monotonic clock
   */
  constructor(options: { readonly minimum: number; readonly now: () => number }) {
    this.#minimum = options.minimum
    this.#now = options.now
  }

  /** Notes that a task begins to run; the function returned notes that it has ended. */
  begin(task: TaskOfJob, how: Performing): () => void {
    const running = { ...task, performing: how, since: this.#now() }
    this.#running.add(running)
    return () => {
      if (this.#running.delete(running) && this.#now() - running.since >= this.#minimum) this.#ended.push(running)
    }
  }

  /** Returns the tasks of a job whose `execute` runs now. */
  executing(job: string): string[] {
    return [...this.#running].filter((one) => one.job === job && one.performing === 'execute').map(({ task }) => task)
  }

  /**
   * Returns the tasks that may have blocked the event loop from that instant until now: those that ran then, the newest
   * first. What had ended since the last call is forgotten.
   */
  since(instant: number): TaskOfJob[] {
    const candidates = [...this.#ended, ...this.#running].filter(({ since }) => since <= instant)
    this.#ended = []
    return candidates
      .sort((a, b) => b.since - a.since)
      .slice(0, MAX_NAMED_TASKS)
      .map(({ job, name, task }) => ({ job, name, task }))
  }

  /** Forgets what has ended: the event loop turns. */
  forgetEnded(): void {
    if (this.#ended.length > 0) this.#ended = []
  }
}
