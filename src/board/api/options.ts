/** The options of a board and of its methods, and their checks. */
import { hostname } from 'node:os'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { assertLogger, type Logger, silentLog } from '../../core/log.ts'
import { assertOptions } from '../../core/options.ts'
import { nameFault } from '../../core/texts.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { assertTelemetry, type Telemetry } from '../../telemetry/index.ts'
import type { Entity } from '../contract/index.ts'
import { toPriority } from '../model/claim-order.ts'
import { POST_OPTIONS, type Posting, type PostOptions, toSize } from '../model/posting.ts'
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

/** Options of a wait. */
export interface WaitOptions {
  /** The longest wait; unlimited by default. */
  readonly timeout?: Duration
  /** The signal that ends the wait; its reason is thrown. */
  readonly signal?: AbortSignal
}

/** The reason of a cancel request without one. */
export const NO_REASON = 'cancelled'

/** Options of `cancel`. */
export interface CancelOptions {
  /** The reason for people; the owner of the job receives it, and the trash keeps it. */
  readonly reason?: string
  /** The person or program that cancels it; the name of this process by default. */
  readonly by?: string
}

/** Options of `release`. */
export interface ReleaseOptions {
  /** The reason for people; the attempt keeps it. */
  readonly reason?: string
  /** The person or program that asks for it; the name of this process by default. */
  readonly by?: string
  /** The run whose claim is released; by default, the run that has the job now. */
  readonly run?: number
}

/** Options of `claimNext`: which jobs to claim, how many, and how long to wait for the first. */
export interface ClaimNextOptions {
  /** The maximum number of jobs to claim at once; 1 by default. */
  readonly max?: number
  /** The longest wait for the first job; unlimited by default. With 0, only jobs that can be claimed now are claimed. */
  readonly timeout?: Duration
  /** Returns whether to claim a job; others are left to other owners. Called often: it should be quick and do no I/O. */
  readonly accept?: (posting: Posting) => boolean
  readonly signal?: AbortSignal
}

/** Options of `claims`: which jobs to claim, one after the other, until the signal fires. */
export type ClaimsOptions = Omit<ClaimNextOptions, 'max' | 'timeout'>

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

/** @throws InvalidArgument */
export function assertWaitOptions(options: WaitOptions): void {
  assertOptions(options, { timeout: true, signal: true }, 'wait')
}

/** @throws InvalidArgument */
export function assertCancelOptions(options: CancelOptions): void {
  assertOptions(options, { reason: true, by: true }, 'cancel')
  assertText(options.reason, 'cancel: reason')
  assertText(options.by, 'cancel: by')
}

/** @throws InvalidArgument */
export function assertReleaseOptions(options: ReleaseOptions): void {
  assertOptions<ReleaseOptions>(options, { reason: true, by: true, run: true }, 'release')
  assertText(options.by, 'release: by')
  assertText(options.reason, 'release: reason')
  const { run } = options
  if (run !== undefined && !(Number.isSafeInteger(run) && run >= 1))
    throw new InvalidArgument(`release: run must be a whole number from 1, got ${String(run)}`)
}

/** @throws InvalidArgument */
export function claimNextSettings(options: ClaimNextOptions): Required<Pick<ClaimNextOptions, 'max' | 'accept'>> {
  assertOptions(options, { accept: true, max: true, signal: true, timeout: true }, 'claimNext')
  const { max = 1, accept = () => true } = options
  if (!Number.isSafeInteger(max) || max < 1)
    throw new InvalidArgument(`claimNext: max must be a whole number from 1, not ${String(max)}`)
  assertAccept(accept, 'claimNext')
  return { max, accept }
}

/** @throws InvalidArgument */
export function assertClaimsOptions(options: ClaimsOptions): void {
  assertOptions(options, { accept: true, signal: true }, 'claims')
  if (options.accept !== undefined) assertAccept(options.accept, 'claims')
}

/** Checks the filter, and parses priority and size, which may be in any case. @throws InvalidArgument */
export function jobsFilter(options: JobsOptions): JobsOptions {
  const known = { onlyUnclaimed: true, ensureFresh: true, name: true, priority: true, size: true, batch: true } as const
  assertOptions<JobsOptions>(options, known, 'jobs')
  for (const name of ['onlyUnclaimed', 'ensureFresh'] as const) assertBoolean(options[name], `jobs: ${name}`)
  assertText(options.name, 'jobs: name')
  assertText(options.batch, 'jobs: batch')
  const { priority, size } = options
  return {
    ...options,
    ...(priority === undefined ? {} : { priority: parseOption(() => toPriority(priority)) }),
    ...(size === undefined ? {} : { size: parseOption(() => toSize(size)) }),
  }
}

/** @throws InvalidArgument */
export function assertUuid(uuid: unknown): void {
  if (typeof uuid !== 'string' || uuid === '')
    throw new InvalidArgument('find: the uuid or reference must be a non-empty string, as in await board.find(job.ref)')
}

/** @throws InvalidArgument */
export function assertEntity(entity: Omit<Entity, 'instance'>): void {
  const { kind, name, metadata }: Partial<Entity> = Object(entity)
  const example = "as in registerEntity({ kind: 'worker', name: 'one', metadata: {} })"
  if (!isName(kind) || !isName(name))
    throw new InvalidArgument(`registerEntity: kind and name must be non-empty strings, ${example}`)
  const fault = nameFault(kind) ?? nameFault(name)
  if (fault !== undefined) throw new InvalidArgument(`registerEntity: kind or name ${fault}`)
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw new InvalidArgument(`registerEntity: metadata must be an object, ${example}`)
}

/** @throws InvalidArgument */
export function assertKind(kind: unknown): void {
  if (!isName(kind))
    throw new InvalidArgument("entities: kind must be a non-empty string, as in board.entities('conductor')")
}

/** Checks an optional boolean. @throws InvalidArgument */
export function assertBoolean(value: unknown, what: string): void {
  if (value !== undefined && typeof value !== 'boolean') throw new InvalidArgument(`${what} must be true or false`)
}

/** Checks an optional string. @throws InvalidArgument */
export function assertText(value: unknown, what: string): void {
  if (value !== undefined && typeof value !== 'string') throw new InvalidArgument(`${what} must be a string`)
}

function assertAccept(accept: unknown, what: string): void {
  if (typeof accept !== 'function') {
    const example = "({ name }) => name === 'resize'"
    throw new InvalidArgument(
      `${what}: accept must be a function that returns whether to claim a job, as in ${example}`,
    )
  }
}

/**
 * Parses the result of `accept`.
 *
 * @throws InvalidArgument for a promise, which would accept every job
 */
export function parseAcceptResult(answer: unknown): boolean {
  const { then }: { readonly then?: unknown } = Object(answer)
  if (typeof then !== 'function') return Boolean(answer)
  // No code awaits the promise: without a handler, its rejection would end the process.
  Promise.resolve(answer).catch(() => undefined)
  throw new InvalidArgument('accept returned a promise; it must be a synchronous function that returns true or false')
}

function parseOption<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof JobboardError ? new InvalidArgument(`jobs: ${error.message}`) : error
  }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
