/** Defaults of a flow for `post`: the author of a flow knows best how many attempts are useful. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import type { Duration } from '../../core/time.ts'

/**
 * The options of `post` that depend on the kind of work. They are written into the posting, so that they hold for every
 * conductor. A post by name alone, without the flow's code, does not have them.
 */
export interface PostingDefaults {
  /** The number of runs that may fail before a job is trashed. */
  readonly maxAttempts?: number
  /** The pause of a job after a failed run. */
  readonly backOff?: {
    readonly first?: Duration
    readonly factor?: number
    readonly max?: Duration
    readonly jitter?: 'full' | 'none'
  }
  /** The time limit of one run, from its claim. */
  readonly deadline?: Duration
  /** The fate of a job whose owner dies: another attempt, or a failure. */
  readonly onOwnerLost?: 'retry' | 'fail'
  readonly priority?: 'VERY_HIGH' | 'HIGH' | 'NORMAL' | 'LOW' | 'VERY_LOW'
  readonly size?: 'small' | 'medium' | 'large'
}

const KNOWN_DEFAULTS: KnownOptions<PostingDefaults> = {
  maxAttempts: true,
  backOff: true,
  deadline: true,
  onOwnerLost: true,
  priority: true,
  size: true,
}

/**
 * Returns a copy without undefined options. The values are checked when a job is posted.
 *
 * @throws InvalidArgument for an unknown option, or one that belongs to a single job (its key, its resources, its delay)
 */
export function checkPostingDefaults(flow: string, given: unknown): PostingDefaults | undefined {
  if (given === undefined) return undefined
  if (typeof given !== 'object' || given === null)
    throw new InvalidArgument(`flow ${flow}: posting must be an object, such as { maxAttempts: 5 }`)
  assertOptions(given, KNOWN_DEFAULTS, `flow ${flow}: posting`)
  return Object.freeze(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)))
}
