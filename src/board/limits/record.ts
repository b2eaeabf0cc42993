/** The records of limits and of holds. */
import { InvalidPosting } from '../../core/errors.ts'
import type { TokenRate } from '../model/limits.ts'
import { count, exactly, fieldsOf, optional, type Parser, parseStored, text, time, where } from '../model/stored.ts'
import type { DeclarationMark } from '../records/declared-records.ts'
import type { RecordKind } from '../records/record-store.ts'

/** The longest period of a rate, and the longest time between two of its starts: a century. */
export const MAX_PERIOD_MS = 36_525 * 86_400_000

/** The limit of a key, or of all keys with the prefix of a pattern (`tenant/*`). */
export interface LimitRecord {
  /** The number of jobs that may run at once. */
  readonly concurrency?: number
  /** The number of starts in a period: `limit` in `perMs` milliseconds, and at most `burst` at once. */
  readonly rate?: { readonly limit: number; readonly perMs: number; readonly burst: number }
  /** Whether the keys of the pattern take turns. */
  readonly fair?: true
  /** The owner name of the board that has set it, and when, in milliseconds since 1970. */
  readonly by: string
  readonly at: number
  /** The mark of a declaration; absent if no program declares the limit. */
  readonly declared?: DeclarationMark
}

/** A hold: no job of the key starts until the hold is removed or its time is over. */
export interface HoldRecord {
  /** The end of the hold, in milliseconds since 1970; absent for a key that is stopped until it is resumed. */
  readonly until?: number
  readonly reason?: string
  readonly by: string
  readonly at: number
}

/** Converts the rate of a record to the time in which a token comes back, and the burst. */
export function toTokenRate({ limit, perMs, burst }: Required<LimitRecord>['rate']): TokenRate {
  return { intervalMs: perMs / limit, burst }
}

/**
 * The maximum size of a limit or a hold: every process that claims keeps all of them in memory. A larger record cannot be read, and no job
 * with its keys starts: without the record, more jobs would start than it permits.
 */
const MAX_LIMIT_BYTES = 16 * 1_024

export const LIMITS: RecordKind<LimitRecord> = {
  ...{ name: 'limit', format: 1, maxBytes: MAX_LIMIT_BYTES },
  parse: parseLimitRecord,
}
export const HOLDS: RecordKind<HoldRecord> = {
  ...{ name: 'limit-hold', format: 1, maxBytes: MAX_LIMIT_BYTES },
  parse: parseHoldRecord,
}

const LIMIT = fieldsOf<LimitRecord>({
  concurrency: optional(count),
  rate: optional(
    fieldsOf({
      limit: positive(Number.MAX_VALUE),
      perMs: positive(MAX_PERIOD_MS),
      burst: positive(Number.MAX_SAFE_INTEGER),
    }),
  ),
  fair: optional(exactly(true)),
  by: text,
  at: time,
  declared: optional(fieldsOf({ owner: text, version: count, digest: text })),
})
const HOLD = fieldsOf<HoldRecord>({ until: optional(time), reason: optional(text), by: text, at: time })

function positive(most: number): Parser<number> {
  return where((value): value is number => typeof value === 'number' && value > 0 && value <= most)
}

function parseLimitRecord(value: unknown, id: string): LimitRecord {
  const record = parseStored(value, LIMIT, `limit ${id}`)
  // An interval that overflows would permit every start.
  if (record.rate && !(toTokenRate(record.rate).intervalMs <= MAX_PERIOD_MS))
    throw new InvalidPosting(`limit ${id} cannot be read: rate is not valid`)
  return record
}

function parseHoldRecord(value: unknown, id: string): HoldRecord {
  return parseStored(value, HOLD, `the hold of limit ${id}`)
}
