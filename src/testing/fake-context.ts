/** A context for a task that runs alone; records the progress and the checkpoints of the task. */
import { decode } from '../core/codec.ts'
import { InvalidArgument } from '../core/errors.ts'
import { type Failure, failureOf } from '../core/failure.ts'
import { type Logger, silentLog } from '../core/log.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import {
  type BatchRun,
  type EndedDependency,
  encodeCheckpoint,
  type RevertContext,
  type RunningJob,
  type ScheduledRun,
  toProgressMessage,
} from '../flow/index.ts'

/** The options of a fake context; all are optional. `result`, `failure` and `failures` are for reverts. */
export interface FakeContextOptions<R = undefined> {
  readonly log?: Logger
  /** `0n` by default, as without a board. */
  readonly fence?: bigint
  /** 1 by default. */
  readonly run?: number
  /** The job; without details unless they are given. */
  readonly job?: Omit<RunningJob, 'details'> & Partial<Pick<RunningJob, 'details'>>
  /** The scheduled run, for a task of a scheduled job. */
  readonly schedule?: ScheduledRun
  /** The jobs after which the job is run, as `ctx.dependencies.read` returns them; none by default. */
  readonly dependencies?: readonly EndedDependency[]
  /** The batch, for a task of a job in a batch, or of the callback of one. */
  readonly batch?: BatchRun
  /** The checkpoint that a former run of the task has saved: `ctx.checkpoint.last`. */
  readonly checkpoint?: unknown
  /** The result of `execute`. */
  readonly result?: R
  /** The reason why `execute` failed. */
  readonly failure?: Error
  /** The reasons why the flow is reverted; the task's own failure by default. */
  readonly failures?: readonly Error[]
}

/** @typeParam R what the task returns, as its `revert` sees it */
export interface FakeContext<S = unknown, R = undefined> extends RevertContext<R, S> {
  /** The progress that the task reported, in order. */
  readonly progressed: readonly number[]
  /** The messages of these reports, in the same order; undefined for a report without one. */
  readonly messages: readonly (string | undefined)[]
  /** The checkpoints that the task saved, in order, as a next run gets them. */
  readonly saved: readonly unknown[]
  /** The tokens that the task took of limits, in order. */
  readonly taken: readonly { readonly key: string; readonly cost: number }[]
  /** Fires the task's signal, as a lost claim does, a deadline, or a shutdown. */
  abort(reason?: unknown): void
}

const KNOWN_OPTIONS: KnownOptions<FakeContextOptions & { services?: unknown }> = {
  services: true,
  log: true,
  fence: true,
  run: true,
  job: true,
  schedule: true,
  dependencies: true,
  batch: true,
  checkpoint: true,
  result: true,
  failure: true,
  failures: true,
}

/**
 * Returns a context for `execute` and `revert`.
 *
 * @example
 * const ctx = fakeContext({ services: { bank }, fence: 7n })
 * await charge.execute({ amount: 3 }, ctx)
 */
export function fakeContext<S = undefined, R = undefined>(
  options: FakeContextOptions<R> & { readonly services?: S } = {},
): FakeContext<S, R> {
  assertOptions(options, KNOWN_OPTIONS, 'fakeContext')
  const { services, log = silentLog, fence = 0n, run = 1, job, schedule, batch, result } = options
  if (typeof fence !== 'bigint') throw new InvalidArgument('fakeContext: fence has to be a bigint, such as 7n')
  const failure = options.failure && failureOf(options.failure)
  const controller = new AbortController()
  const progressed: number[] = []
  const messages: (string | undefined)[] = []
  const saved: unknown[] = []
  const taken: { readonly key: string; readonly cost: number }[] = []
  return {
    signal: controller.signal,
    // Where the type says that there are services, they were given.
    services: services as S,
    ...{
      log,
      fence,
      run,
      job: job && { details: {}, ...job },
      schedule,
      batch,
      result,
      failure,
      failures: toFailures(options.failures, failure),
      progressed,
    },
    ...{ taken, messages, saved },
    limits: {
      take: async (key, { cost = 1, signal } = {}) => {
        for (const each of [controller.signal, signal]) each?.throwIfAborted()
        taken.push({ key, cost })
      },
    },
    dependencies: {
      read: async () => {
        controller.signal.throwIfAborted()
        return options.dependencies ?? []
      },
    },
    checkpoint: {
      last: copyCheckpoint(options.checkpoint),
      save: async (value) => {
        saved.push(copyCheckpoint(value))
      },
    },
    progress: (done, message) => {
      progressed.push(Math.min(1, Math.max(0, done)))
      messages.push(toProgressMessage(message))
    },
    abort: (reason) => controller.abort(reason),
  }
}

/** Returns the checkpoint as the next run gets it. @throws InvalidArgument, PayloadTooLarge */
function copyCheckpoint(value: unknown): unknown {
  return decode(encodeCheckpoint(value, 'the checkpoint'), 'msgpack')
}

function toFailures(errors: readonly Error[] | undefined, own: Failure | undefined): readonly Failure[] {
  return errors?.map((error) => failureOf(error)) ?? (own ? [own] : [])
}
