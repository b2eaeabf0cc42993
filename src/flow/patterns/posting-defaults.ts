/** How jobs of a flow are posted where `post` does not say otherwise: whoever writes a flow knows best how often it is worth a try. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import type { Duration } from '../../core/time.ts'

/**
 * Of the options of `post`, those that belong to the kind of work. They are written into the posting, so that they hold for
 * every conductor; posting by name alone, without the flow's code, leaves them out.
 */
export interface PostingDefaults {
  /** How many runs may fail before a job is trashed. */
  readonly maxAttempts?: number
  /** How long a job rests after a run that failed. */
  readonly backOff?: {
    readonly first?: Duration
    readonly factor?: number
    readonly max?: Duration
    readonly jitter?: 'full' | 'none'
  }
  /** How long one run may take, from its claim. */
  readonly deadline?: Duration
  /** What becomes of a job whose owner dies. */
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
 * A copy, without what is undefined. Whether the values make sense is judged where a job is posted.
 *
 * @throws InvalidArgument for what is no option, or belongs to one job alone (its key, its resources, its delay)
 */
export function checkPostingDefaults(flow: string, given: unknown): PostingDefaults | undefined {
  if (given === undefined) return undefined
  if (typeof given !== 'object' || given === null)
    throw new InvalidArgument(`flow ${flow}: posting has to be an object such as { maxAttempts: 5 }`)
  assertOptions(given, KNOWN_DEFAULTS, `flow ${flow}: posting`)
  return Object.freeze(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)))
}
