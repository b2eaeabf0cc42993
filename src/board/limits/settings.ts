/** The settings of a limit as programs and people give them, and their checks. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions, defined } from '../../core/options.ts'
import { shortenText } from '../../core/texts.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { limitKeyProblem, MAX_CONCURRENCY } from '../model/limits.ts'
import { type LimitRecord, MAX_PERIOD_MS } from './record.ts'

/** The maximum number of starts in a millisecond: no board starts more. */
const MAX_STARTS_PER_MS = 1_000

/** The settings of a limit. At least one of them is set. */
export interface LimitSettings {
  /** The number of jobs of the key that may run at once; 0 starts none. */
  readonly concurrency?: number
  /** The number of jobs of the key that may start in a period. */
  readonly rate?: {
    /** The number of starts, or of tokens where a job takes more than one. */
    readonly limit: number
    /** The period. */
    readonly per: Duration
    /** The number of starts that are possible at once after a time without any; 1 by default, which spaces starts evenly. */
    readonly burst?: number
  }
  /**
   * Whether the keys of a pattern take turns: among jobs of the same priority, the next one is of the key with the fewest running jobs. If
   * several keys have as few, it is of the key that has not started a job for the longest time. False by default.
   */
  readonly fair?: boolean
}

/** Checks settings, and returns them as in the record of a limit, without who has set it. @throws InvalidArgument */
export function toLimitRecord(key: string, settings: LimitSettings): Omit<LimitRecord, 'by' | 'at'> {
  assertOptions(settings, { concurrency: true, rate: true, fair: true }, `limit ${key}`)
  const { concurrency, rate, fair = false } = settings
  if (typeof fair !== 'boolean')
    throw new InvalidArgument(`limit ${key}: fair must be true or false, got ${String(fair)}`)
  if (fair && !key.endsWith('*'))
    throw new InvalidArgument(`limit ${key}: fair belongs to a pattern such as tenant/*, whose keys take turns`)
  if (concurrency === undefined && rate === undefined && !fair)
    throw new InvalidArgument(`limit ${key}: set concurrency, rate, or fair, as in { concurrency: 10 }`)
  if (concurrency !== undefined && !(Number.isSafeInteger(concurrency) && concurrency >= 0))
    throw new InvalidArgument(`limit ${key}: concurrency must be a whole number from 0, got ${String(concurrency)}`)
  if (concurrency !== undefined && concurrency > MAX_CONCURRENCY)
    throw new InvalidArgument(
      `limit ${key}: concurrency must be at most ${MAX_CONCURRENCY}, got ${concurrency}; omit it for no limit`,
    )
  return {
    ...defined({ concurrency }),
    ...(rate === undefined ? {} : { rate: toRate(key, rate) }),
    ...(fair ? { fair } : {}),
  }
}

function toRate(key: string, rate: NonNullable<LimitSettings['rate']>): NonNullable<LimitRecord['rate']> {
  const example = "as in { limit: 100, per: '1m', burst: 20 }"
  assertOptions(rate, { limit: true, per: true, burst: true }, `limit ${key}: rate`)
  const { limit, per, burst = 1 } = rate
  if (!Number.isFinite(limit) || limit <= 0)
    throw new InvalidArgument(`limit ${key}: rate.limit must be a number above 0, got ${String(limit)}, ${example}`)
  if (!Number.isSafeInteger(burst) || burst < 1)
    throw new InvalidArgument(
      `limit ${key}: rate.burst must be a whole number from 1, got ${String(burst)}, ${example}`,
    )
  const perMs = toMilliseconds(per, `limit ${key}: rate.per`)
  if (perMs <= 0 || perMs > MAX_PERIOD_MS)
    throw new InvalidArgument(`limit ${key}: rate.per must be longer than 0 and at most 100 years, got ${String(per)}`)
  if (limit / perMs > MAX_STARTS_PER_MS)
    throw new InvalidArgument(
      `limit ${key}: rate must be at most ${MAX_STARTS_PER_MS} starts in a millisecond; omit it for no limit`,
    )
  // With an interval that overflows to infinity, servers would permit every start, because infinity is not above infinity.
  if (perMs / limit > MAX_PERIOD_MS)
    throw new InvalidArgument(
      `limit ${key}: rate must be at least one start in 100 years; set concurrency: 0 to start nothing`,
    )
  return { limit, perMs, burst }
}

/** Checks a key or pattern. @throws InvalidArgument */
export function assertKeyOrPattern(key: unknown): void {
  const text = typeof key === 'string' && key.endsWith('*') ? key.slice(0, -1) : key
  if (key === '*') return
  const problem = limitKeyProblem(text)
  if (problem === undefined) return
  const isInner = typeof text === 'string' && text.includes('*')
  throw new InvalidArgument(
    isInner
      ? `limit ${shortenText(String(key))}: a pattern has one *, at its end, such as tenant/*`
      : `limit: ${problem}`,
  )
}
