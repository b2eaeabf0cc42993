/** The records of limits: what is set for keys, and which keys are held back. */
import { InvalidPosting } from '../../core/errors.ts'
import type { TokenRate } from '../model/limits.ts'
import type { RecordKind } from '../records/record-store.ts'

/** The limit that is set for a key, or for all keys with the beginning of a pattern (`tenant/*`). */
export interface LimitRecord {
  /** The number of jobs that may run at once. */
  readonly concurrency?: number
  /** The number of starts in a time: `limit` in `perMs` milliseconds, and at most `burst` at once. */
  readonly rate?: { readonly limit: number; readonly perMs: number; readonly burst: number }
  /** Whether the keys of the pattern take turns. */
  readonly fair?: true
  /** The owner name of the board that has set it, and when, in milliseconds since 1970. */
  readonly by: string
  readonly at: number
  /** Set for a limit that a program declares when it starts. The digest is that of the declaration, which somebody may have changed at run time since. */
  readonly declared?: { readonly owner: string; readonly version: number; readonly digest: string }
}

/** A key of which no job starts for now. It stays until it is removed, or its time is over. */
export interface HoldRecord {
  /** Milliseconds since 1970; absent for a key that is stopped until somebody resumes it. */
  readonly until?: number
  readonly reason?: string
  readonly by: string
  readonly at: number
}

/** Returns how fast tokens come back at the rate of a record. */
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
