/** The options of a board and of its methods, and their checks. */
import { hostname } from 'node:os'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { assertLogger, type Logger, silentLog } from '../../core/log.ts'
import { assertBoolean, assertOptions, assertText } from '../../core/options.ts'
import { nameFault } from '../../core/texts.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { assertTelemetry, type Telemetry } from '../../telemetry/index.ts'
import type { WaitOptions } from '../jobs/job.ts'
import { toPriority } from '../model/claim-order.ts'
import { POST_OPTIONS, type PostOptions } from '../model/posting/post-options.ts'
import { parseQueue } from '../model/queues.ts'
import type { JobsOptions } from './listed.ts'

/** Options of every kind of board. */
export interface BoardOptions {
  /** The owner's name in claims; `host:pid` by default. It must not be empty. */
  readonly who?: string
  readonly log?: Logger
  /**
   * The time after which other jobs no longer wait for the resources of jobs whose flow no living conductor knows; 1 h by default.
   * The jobs stay on the board, and others wait for them again once a conductor knows the flow.
   */
  readonly unacceptedAfter?: Duration
  /**
   * The number of ended jobs that the board keeps in its history (`board.history`), of those that this process ends; 10,000 by default. A job
   * can depend on jobs that have ended for as long as they are in the history. With 0, this process adds none.
   */
  readonly keepHistory?: number
  /** Where the spans of posts, and the number of posted jobs, go, as `openTelemetry(api)` returns it; nowhere by default. */
  readonly telemetry?: Telemetry
}

const DEFAULT_KEEP_HISTORY = 10_000
const MAX_KEEP_HISTORY = 1_000_000
const DEFAULT_UNACCEPTED_AFTER = '1h'

export interface BoardSettings {
  readonly who: string
  readonly log: Logger
  /** The time in milliseconds. */
  readonly unacceptedAfter: number
  readonly keepHistory: number
  readonly telemetry: Telemetry | undefined
}

/** Checks the options of a board. @throws TypeError unless `who` is a non-empty string; InvalidArgument for an invalid logger or duration */
export function boardSettings(options: BoardOptions): BoardSettings {
  const { who = `${hostname()}:${process.pid}`, log = silentLog, unacceptedAfter = DEFAULT_UNACCEPTED_AFTER } = options
  const { keepHistory = DEFAULT_KEEP_HISTORY, telemetry } = options
  if (!Number.isInteger(keepHistory) || keepHistory < 0 || keepHistory > MAX_KEEP_HISTORY)
    throw new InvalidArgument(`keepHistory must be a whole number from 0 to ${MAX_KEEP_HISTORY}, got ${keepHistory}`)
  if (typeof who !== 'string' || who === '') throw new TypeError('who must be a non-empty string')
  const fault = nameFault(who)
  if (fault !== undefined) throw new InvalidArgument(`who ${fault}`)
  assertLogger(log)
  assertTelemetry(telemetry, 'openBoard')
  return { who, log, unacceptedAfter: toMilliseconds(unacceptedAfter, 'unacceptedAfter'), keepHistory, telemetry }
}

/** Options of `postAndClaim`: those of `post` except `delay`, and those of the wait for the job's turn. */
export type PostAndClaimOptions = Omit<PostOptions, 'delay'> & WaitOptions

/** @throws InvalidArgument */
export function postAndClaimSettings(options: PostAndClaimOptions): { post: PostOptions; wait: WaitOptions } {
  const { delay: _, ...known } = POST_OPTIONS
  assertOptions(options, { ...known, timeout: true, signal: true }, 'postAndClaim')
  const { timeout, signal, ...post } = options
  return { post, wait: { ...(timeout === undefined ? {} : { timeout }), ...(signal ? { signal } : {}) } }
}

/** Checks the filter, and parses the priority, which may be in any case. @throws InvalidArgument */
export function jobsFilter(options: JobsOptions): JobsOptions {
  const known = {
    onlyUnclaimed: true,
    ensureFresh: true,
    name: true,
    priority: true,
    queue: true,
    batch: true,
  } as const
  assertOptions<JobsOptions>(options, known, 'jobs')
  for (const name of ['onlyUnclaimed', 'ensureFresh'] as const) assertBoolean(options[name], `jobs: ${name}`)
  assertText(options.name, 'jobs: name')
  assertText(options.batch, 'jobs: batch')
  const { priority, queue } = options
  parseOption(() => parseQueue(queue))
  return {
    ...options,
    ...(priority === undefined ? {} : { priority: parseOption(() => toPriority(priority)) }),
  }
}

/** @throws InvalidArgument */
export function assertUuid(uuid: unknown): void {
  if (typeof uuid !== 'string' || uuid === '')
    throw new InvalidArgument('find: the uuid or reference must be a non-empty string, as in await board.find(job.ref)')
}

function parseOption<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof JobboardError ? new InvalidArgument(`jobs: ${error.message}`) : error
  }
}
