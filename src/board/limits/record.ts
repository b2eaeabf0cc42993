/** The records of limits and of holds. */
import { InvalidPosting } from '../../core/errors.ts'
import type { TokenRate } from '../model/limits.ts'
import type { RecordKind } from '../records/record-store.ts'

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
  /**
   * The mark of a declaration; absent if no program declares the limit. The digest is that of the declared settings: those of the record
   * differ from it after a change at run time.
   */
  readonly declared?: { readonly owner: string; readonly version: number; readonly digest: string }
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

export const LIMITS: RecordKind<LimitRecord> = { name: 'limit', format: 1, parse: parseLimitRecord }
export const HOLDS: RecordKind<HoldRecord> = { name: 'limit-hold', format: 1, parse: parseHoldRecord }

function parseLimitRecord(value: unknown, id: string): LimitRecord {
  const { concurrency, rate, fair, by, at, declared } = Object(value)
  const isValid =
    isOptional(concurrency, (count) => Number.isSafeInteger(count) && Number(count) >= 0) &&
    isOptional(rate, isRate) &&
    isOptional(fair, (is) => is === true) &&
    isOptional(declared, isDeclared) &&
    typeof by === 'string' &&
    Number.isFinite(at)
  if (!isValid) throw new InvalidPosting(`limit ${id} is not complete`)
  return value as LimitRecord
}

function isRate(value: unknown): boolean {
  const { limit, perMs, burst } = Object(value)
  return [limit, perMs, burst].every((number) => Number.isFinite(number) && number > 0)
}

function isDeclared(value: unknown): boolean {
  const { owner, version, digest } = Object(value)
  return typeof owner === 'string' && Number.isSafeInteger(version) && typeof digest === 'string'
}

function parseHoldRecord(value: unknown, id: string): HoldRecord {
  const { until, reason, by, at } = Object(value)
  const isValid =
    isOptional(until, Number.isFinite) &&
    isOptional(reason, (text) => typeof text === 'string') &&
    typeof by === 'string' &&
    Number.isFinite(at)
  if (!isValid) throw new InvalidPosting(`the hold of limit ${id} is not complete`)
  return value as HoldRecord
}

function isOptional(value: unknown, isValid: (value: unknown) => boolean): boolean {
  return value === undefined || isValid(value)
}
