/** What a board and its calls may be told, and what is said to whoever told them nonsense. */
import { hostname } from 'node:os'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { assertLogger, type Logger, silentLog } from '../../core/log.ts'
import { assertOptions } from '../../core/options.ts'
import { isTooLong, MAX_NAME_BYTES } from '../../core/texts.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import type { Entity } from '../backend.ts'
import { POST_OPTIONS, type Posting, type PostOptions, toSize } from '../model/posting.ts'
import { toPriority } from '../model/priority.ts'
import type { JobsOptions } from './listed.ts'

/** What every kind of board can be told. */
export interface BoardOptions {
  /** Who claims: `host:pid` by default. Must not be empty. */
  readonly who?: string
  readonly log?: Logger
  /**
   * After how long jobs of a flow that no living conductor knows stop holding back other jobs that want the same resources; 1 h
   * by default. They stay on the board, and hold others back again once a conductor knows the flow.
   */
  readonly unacceptedAfter?: Duration
}

const DEFAULT_UNACCEPTED_AFTER = '1h'

/** How long to wait, and what ends it sooner: the signal's reason is thrown then. */
export interface WaitOptions {
  /** For ever by default. */
  readonly timeout?: Duration
  readonly signal?: AbortSignal
}

/** What a cancel says whose reason nobody gave. */
export const NO_REASON = 'cancelled'

/** Why a job is asked back. */
export interface CancelOptions {
  /** For people; told to whoever runs the job, and kept in the trash. */
  readonly reason?: string
}

/** Which jobs to claim, how many, and how long to wait for the first. */
export interface ClaimNextOptions {
  /** Up to so many at once; 1 by default. */
  readonly max?: number
  /** How long to wait for the first; for ever by default. 0: what can be claimed now, as far as this process knows. */
  readonly timeout?: Duration
  /** Jobs it says no to are left to others. Asked often: it should be quick and ask nobody. */
  readonly accept?: (posting: Posting) => boolean
  readonly signal?: AbortSignal
}

/** Which jobs to claim, one after the other, until the signal fires. */
export type ClaimsOptions = Omit<ClaimNextOptions, 'max' | 'timeout'>

export interface BoardSettings {
  readonly who: string
  readonly log: Logger
  /** In milliseconds. */
  readonly unacceptedAfter: number
}

/** @throws TypeError when `who` is no text or empty; InvalidArgument for a logger that is none, and for what is no duration */
export function boardSettings(options: BoardOptions): BoardSettings {
  const { who = `${hostname()}:${process.pid}`, log = silentLog, unacceptedAfter = DEFAULT_UNACCEPTED_AFTER } = options
  if (typeof who !== 'string' || who === '') throw new TypeError('who has to be a text that is not empty')
  if (isTooLong(who)) throw new InvalidArgument(`who can have ${MAX_NAME_BYTES} bytes, and has more`)
  assertLogger(log)
  return { who, log, unacceptedAfter: toMilliseconds(unacceptedAfter, 'unacceptedAfter') }
}

/** Of {@link PostOptions}, what makes sense where the poster claims the job; and how long to wait for its turn. */
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
  assertOptions(options, { reason: true }, 'cancel')
  assertText(options.reason, 'cancel: reason')
}

/** @throws InvalidArgument */
export function claimNextSettings(options: ClaimNextOptions): Required<Pick<ClaimNextOptions, 'max' | 'accept'>> {
  assertOptions(options, { accept: true, max: true, signal: true, timeout: true }, 'claimNext')
  const { max = 1, accept = () => true } = options
  if (!Number.isSafeInteger(max) || max < 1)
    throw new InvalidArgument(`claimNext: max has to be a whole number from 1, not ${String(max)}`)
  assertAccept(accept, 'claimNext')
  return { max, accept }
}

/** @throws InvalidArgument */
export function assertClaimsOptions(options: ClaimsOptions): void {
  assertOptions(options, { accept: true, signal: true }, 'claims')
  if (options.accept !== undefined) assertAccept(options.accept, 'claims')
}

/** Priority and size as they are posted, in any case. @throws InvalidArgument */
export function jobsFilter(options: JobsOptions): JobsOptions {
  assertOptions(options, { onlyUnclaimed: true, ensureFresh: true, name: true, priority: true, size: true }, 'jobs')
  for (const name of ['onlyUnclaimed', 'ensureFresh'] as const) assertBoolean(options[name], `jobs: ${name}`)
  assertText(options.name, 'jobs: name')
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
    throw new InvalidArgument('find takes the uuid of a job, a text, as in await board.find(job.uuid)')
}

/** @throws InvalidArgument */
export function assertEntity(entity: Omit<Entity, 'instance'>): void {
  const { kind, name, metadata }: Partial<Entity> = Object(entity)
  const example = "as in registerEntity({ kind: 'worker', name: 'one', metadata: {} })"
  if (!isName(kind) || !isName(name))
    throw new InvalidArgument(`registerEntity: kind and name have to be texts that are not empty, ${example}`)
  if (isTooLong(kind) || isTooLong(name))
    throw new InvalidArgument(`registerEntity: kind and name can have ${MAX_NAME_BYTES} bytes each, ${example}`)
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw new InvalidArgument(`registerEntity: metadata has to be an object, ${example}`)
}

/** @throws InvalidArgument */
export function assertKind(kind: unknown): void {
  if (!isName(kind)) throw new InvalidArgument("entities takes a kind, as in board.entities('conductor')")
}

/** @throws InvalidArgument unless it is absent, or one of the two */
export function assertBoolean(value: unknown, what: string): void {
  if (value !== undefined && typeof value !== 'boolean') throw new InvalidArgument(`${what} is true or false`)
}

/** @throws InvalidArgument unless it is absent, or a text */
export function assertText(value: unknown, what: string): void {
  if (value !== undefined && typeof value !== 'string') throw new InvalidArgument(`${what} has to be a text`)
}

function assertAccept(accept: unknown, what: string): void {
  if (typeof accept !== 'function') {
    const example = "({ name }) => name === 'resize'"
    throw new InvalidArgument(`${what}: accept has to be a function that says which jobs to claim, as in ${example}`)
  }
}

/**
 * Reads what `accept` has answered.
 *
 * @throws InvalidArgument for a promise, which would be a yes to everything
 */
export function parseAcceptResult(answer: unknown): boolean {
  const { then }: { readonly then?: unknown } = Object(answer)
  if (typeof then !== 'function') return Boolean(answer)
  // Nobody waits for it: what it fails with is not heard otherwise.
  Promise.resolve(answer).catch(() => undefined)
  throw new InvalidArgument('accept answered with a promise; it has to say yes or no at once: no async function')
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
