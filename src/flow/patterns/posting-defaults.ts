/** Defaults of a flow for `post`: the author of a flow knows best how many attempts are useful. */
import { InvalidArgument } from '../../core/errors.ts'
import { describeError, type Failure } from '../../core/failure.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import type { Duration } from '../../core/time.ts'

/** A store whose type is not known. */
type AnyStore = Readonly<Record<string, unknown>>

/** A value, or a function that computes it from the store of a job; undefined for nothing. */
type FromStore<T, S> = T | ((store: Readonly<S>) => T | undefined)

/** When a job is tried again; undefined for the back-off. */
export type RetryAnswer = Duration | Date | 'trash' | undefined

/** A key with its window, and what becomes of a post that finds it taken. */
interface DeclaredKey {
  readonly name: string
  readonly for?: Duration
  readonly on?: 'ignore' | 'replace'
  /** A property of functions, which have a name, too: a function that computes something else must not count as a key. */
  readonly apply?: never
}

/**
 * The options of `post` that depend on the kind of work. They are written into the posting, so that they hold for every
 * conductor. A post by name alone, without the flow's code, does not have them.
 *
 * `resources`, `key` and `limits` are declarations, not defaults: a caller of `post` can add to them, and cannot remove them. Each is a
 * value, or a function of the store as the flow's schema returns it. A function must depend on nothing but the store: it is called where the
 * job is posted, and `resources` and `limits` again at each claim by a conductor.
 *
 * @typeParam S the type of the store
 */
export interface PostingDefaults<S = AnyStore> {
  /** The resources that each job owns while it runs. */
  readonly resources?: FromStore<Readonly<Partial<Record<'exclusive' | 'shared', readonly string[]>>>, S>
  /**
   * Makes each job own the resource `mutex/NAME` exclusively, so that at most one of them runs at a time. NAME is the name of the flow with `true`, else
   * the text, which several flows can have.
   */
  readonly mutex?: boolean | string
  /** The key of each job: at most one job with it is on the board. With `{ name, for, on }` it has a window, or replaces jobs that wait. */
  readonly key?: FromStore<string | DeclaredKey, S>
  /** The keys of the limits that each job keeps, besides the key of its flow. */
  readonly limits?: FromStore<readonly (string | { readonly key: string; readonly cost?: number })[], S>
  /** The number of runs that may fail before a job is trashed. */
  readonly maxAttempts?: number
  /** The pause of a job after a failed run. */
  readonly backOff?: {
    readonly first?: Duration
    readonly factor?: number
    readonly max?: Duration
    readonly jitter?: 'full' | 'none'
  }
  /**
   * Decides when a job is tried again after a failed run, in place of `backOff`: returns the pause, the time, `'trash'`, or nothing for the back-off. It is called
   * by the conductor that ran the job, unless its `onError` has answered, and not for a NonRetryable. With `retry`, `maxAttempts` is 1,000,000 by default.
   *
   * @param failures the number of runs that have failed, with this one: 1 after the first
   * @example (failures, { code }) => (code === 'ENOSPC' ? '1h' : failures < 20 ? '30s' : 'trash')
   */
  readonly retry?: (failures: number, failure: Failure) => RetryAnswer | Promise<RetryAnswer>
  /** The time after the end of a job for which its results can be read. */
  readonly resultTtl?: Duration
  /** The time after its post after which a job that was not started goes to the trash. */
  readonly expiresAfter?: Duration
  /** The time limit of one run, from its claim. */
  readonly deadline?: Duration
  /** The fate of a job whose owner dies: another attempt, or a failure. */
  readonly onOwnerLost?: 'retry' | 'fail'
  readonly priority?: 'VERY_HIGH' | 'HIGH' | 'NORMAL' | 'LOW' | 'VERY_LOW'
  /** The queue of the jobs. */
  readonly queue?: string
  /** @deprecated The queue with this name. */
  readonly size?: 'small' | 'medium' | 'large'
}

/** The default of `maxAttempts` with `retry`: the maximum that a board accepts (`board/model/attempts.ts`). */
const ATTEMPTS_WITH_RETRY = 1_000_000

const KNOWN_DEFAULTS: KnownOptions<PostingDefaults> = {
  resources: true,
  mutex: true,
  key: true,
  limits: true,
  maxAttempts: true,
  backOff: true,
  retry: true,
  resultTtl: true,
  expiresAfter: true,
  deadline: true,
  onOwnerLost: true,
  priority: true,
  queue: true,
  size: true,
}

/**
 * Returns a copy without undefined options. The values are checked when a job is posted.
 *
 * @throws InvalidArgument for an unknown option, or an option that belongs to a single job, such as its delay
 */
export function checkPostingDefaults(flow: string, value: unknown): PostingDefaults | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'object' || value === null)
    throw new InvalidArgument(`flow ${flow}: posting must be an object, such as { maxAttempts: 5 }`)
  assertOptions(value, KNOWN_DEFAULTS, `flow ${flow}: posting`)
  const { retry, mutex }: PostingDefaults = value
  if (retry !== undefined && typeof retry !== 'function')
    throw new InvalidArgument(
      `flow ${flow}: posting.retry must be a function of the number of failed runs and the failure`,
    )
  if (mutex !== undefined && typeof mutex !== 'boolean' && (typeof mutex !== 'string' || mutex === ''))
    throw new InvalidArgument(`flow ${flow}: posting.mutex must be true, false, or a name that flows share`)
  const given = Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined))
  return Object.freeze(retry ? { maxAttempts: ATTEMPTS_WITH_RETRY, ...given } : given)
}

/** The declarations of a flow for one store. The values are not checked yet. */
export type Declarations = Readonly<Partial<Record<'resources' | 'key' | 'limits', unknown>>> & {
  /** The resource that each job of the flow owns alone. */
  readonly mutex?: string | undefined
}

const NO_DECLARATIONS: Declarations = {}

/**
 * Evaluates the declarations of a flow.
 *
 * @param store the store, as the flow's schema returned it
 * @throws InvalidArgument for a function that throws or returns a promise
 */
export function evaluateDeclarations(
  { name, posting }: { readonly name: string; readonly posting: PostingDefaults | undefined },
  store: AnyStore,
): Declarations {
  const { resources, mutex = false, key, limits } = posting ?? {}
  if (resources === undefined && mutex === false && key === undefined && limits === undefined) return NO_DECLARATIONS
  // A copy: a function that changed the store would change the inputs of the tasks.
  const frozen = Object.freeze({ ...store })
  const evaluate = (what: string, declared: unknown): unknown => {
    if (typeof declared !== 'function') return declared
    try {
      const value: unknown = declared(frozen)
      if (typeof Object(value).then !== 'function') return value
      // An unhandled rejection would end the process.
      Promise.resolve(value).catch(() => undefined)
    } catch (error) {
      const message = `flow ${name}: posting.${what} has thrown for a store: ${describeError(error)}`
      throw new InvalidArgument(message, { cause: error })
    }
    throw new InvalidArgument(`flow ${name}: posting.${what} must return a value, not a promise`)
  }
  return {
    resources: evaluate('resources', resources),
    mutex: mutex === false ? undefined : `mutex/${mutex === true ? name : mutex}`,
    key: evaluate('key', key),
    limits: evaluate('limits', limits),
  }
}
