/** The back-off of a job: the pauses after failed runs. */
import { InvalidPosting } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'

/** The back-off as a caller posts it. */
export interface PostBackOff {
  /** The pause after the first failure; 1 s by default. */
  readonly first?: Duration
  /** The factor by which the pause grows each time; 2 by default, 1 for pauses of the same length. */
  readonly factor?: number
  /** The longest pause; 5 min by default. */
  readonly max?: Duration
  /** `full` (the default) pauses for a random part of the time, so that jobs do not become due together; `none` for all of it. */
  readonly jitter?: 'full' | 'none'
}

/** The back-off as the posting stores it, in milliseconds. */
export interface StoredBackOff {
  readonly first?: number
  readonly factor?: number
  readonly max?: number
  readonly jitter?: 'full' | 'none'
}

/** Converts a posted back-off. @throws InvalidArgument for an invalid duration or an unknown option */
export function makeBackOff(options: PostBackOff): StoredBackOff {
  assertOptions(options, { first: true, factor: true, max: true, jitter: true }, 'post: backOff')
  const { first, max, ...rest } = options
  return {
    ...rest,
    ...(first === undefined ? {} : { first: toMilliseconds(first, 'backOff.first') }),
    ...(max === undefined ? {} : { max: toMilliseconds(max, 'backOff.max') }),
  }
}

/** Parses a stored back-off; undefined stands for the default. @throws InvalidPosting */
export function parseBackOff(value: unknown): StoredBackOff | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'object' || value === null)
    throw new InvalidPosting('backOff must be an object such as { first: 1000 }')
  const { first, factor, max, jitter } = Object(value) as { readonly [K in keyof StoredBackOff]?: unknown }
  for (const time of [first, max]) {
    if (time !== undefined && !(typeof time === 'number' && Number.isFinite(time) && time >= 0))
      throw new InvalidPosting('backOff: first and max must be numbers of milliseconds from 0')
  }
  if (factor !== undefined && !(typeof factor === 'number' && Number.isFinite(factor) && factor >= 1))
    throw new InvalidPosting('backOff: factor must be a number of at least 1')
  if (jitter !== undefined && jitter !== 'full' && jitter !== 'none')
    throw new InvalidPosting("backOff: jitter must be 'full' or 'none'")
  // Copies the known fields only: other fields come from other writers and are not checked.
  return {
    ...(typeof first === 'number' ? { first } : {}),
    ...(typeof factor === 'number' ? { factor } : {}),
    ...(typeof max === 'number' ? { max } : {}),
    ...(jitter === undefined ? {} : { jitter }),
  }
}
