/** The context of a task, its second parameter: the run, the job, and the stop signal. */
import type { Failure } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'

/**
 * The context of a task: the second parameter of its functions, after the arguments.
 *
 * @typeParam S the services that the task needs, such as `{ db: Database }`. The caller that runs its flow has to pass them:
 * the compiler checks that.
 */
export interface Context<S = unknown> {
  /**
   * The stop signal. It fires when the task has to stop: the claim is lost, the process shuts down, or its deadline has
   * passed. Its reason is an error. Errors that the task throws afterwards do not count as its failure, except after a
   * deadline.
   */
  readonly signal: AbortSignal
  /** A logger that names the flow and the task in every line. */
  readonly log: Logger
  /**
   * The fence: a number that grows with every claim of the whole board. If another system refuses numbers smaller than the
   * greatest it has seen, a former owner cannot write to it. Without a board it is `0n`, less than the fence of every claim.
   */
  readonly fence: bigint
  /** The number of claims of the job so far, this one included; from 1. */
  readonly run: number
  /** The job; undefined if the flow runs without a board. */
  readonly job: RunningJob | undefined
  /** The schedule that has posted the job, and the time for which it was posted; undefined for other jobs. */
  readonly schedule: ScheduledRun | undefined
  /** The batch that counts the job, or whose end has posted it; undefined for other jobs. */
  readonly batch: BatchRun | undefined
  /** The limits of the board: `ctx.limits.take` waits for tokens of a rate. */
  readonly limits: ContextLimits
  /** The jobs after which the job is run: `ctx.dependencies.read` returns how they ended, and their results. */
  readonly dependencies: ContextDependencies
  /**
   * The services for all tasks of the flow, such as a database: the option `services` of the conductor, of `runFlow`, or of
   * the engine. Undefined if the option is absent.
   */
  readonly services: S
  /**
   * Reports the progress, from 0 to 1; other numbers count as the nearest of these. Progress is recorded with the next
   * transition, and at least once a second, which costs a write. Does nothing while the atom is reverted.
   *
   * @param message a short text for people, such as `page 3 of 7`; a longer one is cut to 200 characters. It is valid until the next report.
   */
  progress(done: number, message?: string): void
  /** The checkpoint: where the former run of this task stopped, and what the next one will find. */
  readonly checkpoint: ContextCheckpoint
}

/** The job whose flow is run, as `ctx.job`. */
export interface RunningJob {
  readonly uuid: string
  readonly name: string
  /** The fields that its poster added with the option `details`, such as a tenant. */
  readonly details: Readonly<Record<string, unknown>>
}

/**
 * The checkpoint of a task, as `ctx.checkpoint`. It is cleared when the task succeeds, and when its `revert` has run. It is not handed to a
 * further attempt if a task before this one is executed again, too: what it says may not be true any more.
 */
export interface ContextCheckpoint {
  /**
   * The value that a former run of this task saved last, in this job; undefined if there is none. For a revert, the value that `execute` saved
   * last. It stays the same while the task runs, and is a copy. Check it: an older release of the task may have written it.
   */
  readonly last: unknown
  /**
   * Saves plain data of at most 64 KB, encoded; `undefined` removes what was saved. It is durable when the promise resolves, and costs a write:
   * values that are saved during a write are combined, and the newest is written. A task can save also after its signal has fired, unless the
   * claim is lost.
   *
   * @throws InvalidArgument for a value that is not plain data; PayloadTooLarge; InvalidState after the end of the task; ClaimLost and
   * StorageFailure, after which the run is over
   * @example await ctx.checkpoint.save({ row: 1_200 })
   */
  save(value: unknown): Promise<void>
}

/** The limits of the board on which the task's job is, as `ctx.limits`. */
export interface ContextLimits {
  /**
   * Waits until the rate of the key permits so many tokens, and takes them: for each call of a service that a task calls several times. Ends
   * with the reason of the task's signal, or of `options.signal`. Resolves at once for a key without a rate, without a board, and on a board
   * that has no limits. The tokens are not given back.
   *
   * @throws the reason of a signal; InvalidArgument
   * @example await ctx.limits.take('api/stripe')
   */
  take(key: string, options?: ContextTakeOptions): Promise<void>
}

/** The options of `ctx.limits.take`; all are optional. */
export interface ContextTakeOptions {
  /** The number of tokens; 1 by default. */
  readonly cost?: number
  /** Ends the wait, as the signal of the task does. */
  readonly signal?: AbortSignal
}

/** The jobs after which the task's job is run (the option `after` of its post), as `ctx.dependencies`. */
export interface ContextDependencies {
  /**
   * Reads how these jobs ended, in the order in which the post named them; an empty list for a job that is run after none, and without a
   * board. One round trip to the board, and one to the logbooks for each job whose results the board does not keep. Ends with the reason of
   * the task's signal.
   *
   * @throws SealedLogbook where codecs do not match; StorageFailure, NotConnected
   * @example const sizes = (await ctx.dependencies.read()).map(({ results }) => results?.size)
   */
  read(): Promise<readonly EndedDependency[]>
}

/** A job after which another one is run, and how it ended. */
export interface EndedDependency {
  readonly uuid: string
  /** The name of the job; undefined where the history of the board does not know it any more. */
  readonly name: string | undefined
  /**
   * COMPLETE: done. TRASHED: in the trash, which only happens with `on: 'settled'`. Undefined where neither the history of the board nor the
   * logbooks know it any more.
   */
  readonly outcome: 'COMPLETE' | 'TRASHED' | undefined
  /** The reason why the job is in the trash. */
  readonly reason: string | undefined
  /**
   * The results that its flow provided, by name: from the board, where its flow has `keepResults`, else from the logbooks, where this process
   * knows its flow. Undefined where there are no results, or they cannot be read.
   */
  readonly results: Readonly<Record<string, unknown>> | undefined
}

/** The time for which a schedule has posted a job. */
export interface ScheduledRun {
  /** The id of the schedule. */
  readonly id: string
  /** The time that the rule names, whenever the job was posted. Work on this time, and not on the present one. */
  readonly nominal: Date
  /** The nominal time of the job before; absent for the first one. */
  readonly previous?: Date
  /** The milliseconds by which the job was posted later than its nominal time. */
  readonly lateMs: number
  /** The number of times just before it that were not run. */
  readonly missed: number
  /** Whether a caller has triggered the job. */
  readonly manual: boolean
  /** Whether the job is of a backfill. */
  readonly backfill: boolean
  /** The tenant, of a schedule that has several. */
  readonly tenant?: string
}

/** The batch of a job. */
export interface BatchRun {
  readonly uuid: string
  /** The end of the batch, for its callback; absent for the jobs of the batch. */
  readonly ended?: {
    /** The name of the batch. */
    readonly name: string
    /** 1, and one more each time that the batch was opened again after its end. */
    readonly generation: number
    /** The number of its jobs. */
    readonly total: number
    readonly done: number
    /** The number of these jobs that are in the trash. */
    readonly failed: number
  }
}

/** The context of a task that is reverted: the result of `execute`, and the reasons for the revert. */
export interface RevertContext<R, S = unknown> extends Context<S> {
  /** The result of `execute`; undefined if it failed, or if its process died before the result was recorded. */
  readonly result: R | undefined
  /** The failure of this task's own `execute`; undefined if it did not fail. */
  readonly failure: Failure | undefined
  /** The failures for which the flow is reverted: one for every failed `execute` in it. */
  readonly failures: readonly Failure[]
}
