/** How long a job rests after a run that failed, as its poster wants it. */
import { InvalidPosting } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'

/** As it is posted. */
export interface PostBackOff {
  /** The rest after the first failure; 1 s by default. */
  readonly first?: Duration
  /** What the rest grows by each time; 2 by default, 1 for rests of the same length. */
  readonly factor?: number
  /** No rest is longer; 5 min by default. */
  readonly max?: Duration
  /** `full` (the default) rests for a random part of the time, so that a crowd spreads; `none` for all of it. */
  readonly jitter?: 'full' | 'none'
}

/** As it is on the board: in milliseconds. */
export interface StoredBackOff {
  readonly first?: number
  readonly factor?: number
  readonly max?: number
  readonly jitter?: 'full' | 'none'
}

/** @throws InvalidArgument for a duration that is none, InvalidPosting for what else makes no sense */
export function makeBackOff(options: PostBackOff): StoredBackOff {
  assertOptions(options, { first: true, factor: true, max: true, jitter: true }, 'post: backOff')
  const { first, max, ...rest } = options
  return {
    ...rest,
    ...(first === undefined ? {} : { first: toMilliseconds(first, 'backOff.first') }),
    ...(max === undefined ? {} : { max: toMilliseconds(max, 'backOff.max') }),
  }
}

/** @throws InvalidPosting; absent is the usual */
export function parseBackOff(value: unknown): StoredBackOff | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'object' || value === null)
    throw new InvalidPosting('backOff has to be an object such as { first: 1000 }')
  const { first, factor, max, jitter } = Object(value) as { readonly [K in keyof StoredBackOff]?: unknown }
  for (const time of [first, max]) {
    if (time !== undefined && !(typeof time === 'number' && Number.isFinite(time) && time >= 0))
      throw new InvalidPosting('backOff: first and max have to be milliseconds')
  }
  if (factor !== undefined && !(typeof factor === 'number' && Number.isFinite(factor) && factor >= 1))
    throw new InvalidPosting('backOff: factor has to be a number from 1')
  if (jitter !== undefined && jitter !== 'full' && jitter !== 'none')
    throw new InvalidPosting("backOff: jitter is either 'full' or 'none'")
  // Field by field: whatever else is in it was written by others and checked by nobody.
  return {
    ...(typeof first === 'number' ? { first } : {}),
    ...(typeof factor === 'number' ? { factor } : {}),
    ...(typeof max === 'number' ? { max } : {}),
    ...(jitter === undefined ? {} : { jitter }),
  }
}
