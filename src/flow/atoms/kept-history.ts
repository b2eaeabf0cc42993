/**
 * The history of a retry as its record keeps it. A record is written anew at each attempt, so it must not grow with the number of attempts:
 * a retry may poll for days.
 *
 * | attempts | what is kept |
 * |---|---|
 * | the first 3, and the last 16 | the value, and the first failure of each atom, for at most 16 atoms: shortened, without stack |
 * | the others | their number; the newest values, up to 64 KB; how often each class and code of error was a cause |
 *
 * Equal values in a row, and values that count up by one (as with `times`), take the room of one value.
 */
import { isDeepStrictEqual } from 'node:util'
import { encodePlain } from '../../core/codec.ts'
import type { Failure } from '../../core/failure.ts'

/** An attempt, as plain data in the record of the retry. */
export interface RetryAttempt<R = unknown> {
  /** The result of the retry's `execute` for this attempt. */
  readonly value: R
  /** The first failure of each atom, in order of time; shortened, without stack. Empty for attempts that the record keeps without failures. */
  readonly failures: readonly { readonly atom: string; readonly failure: Failure }[]
}

const KEPT = { first: 3, last: 16 } as const
/** The maximum number of failures that are kept of an attempt. */
const MAX_FAILURES = 16
const MAX_MESSAGE_LENGTH = 500
const MAX_CAUSES = { each: 3, depth: 3 } as const
/** The maximum number of error names that are counted. */
const MAX_ERRORS = 64
/** The maximum room for the values of the attempts in between: in runs of equal or counting values, and in encoded bytes. */
const MAX_VALUES = { runs: 1_000, bytes: 64_000 } as const

/** Values of attempts that follow each other. */
export interface ValueRun {
  readonly count: number
  /** The first value; absent where the values are not kept, or are undefined. */
  readonly value?: unknown
  /** 1 where each value is one more than the one before. */
  readonly step?: 1
}

/** The attempts in between, which are not kept whole. */
export interface OmittedAttempts {
  readonly values: readonly ValueRun[]
  /** The classes and codes of errors, each with the number of failures that had it themselves or in a cause. */
  readonly errors: readonly (readonly [error: string, count: number])[]
}

/** An attempt of a record. With `omitted`, it stands for all attempts in between, and its other fields have no meaning. */
export interface KeptAttempt<R = unknown> extends RetryAttempt<R> {
  readonly omitted?: OmittedAttempts
}

/** Returns the history with another attempt, which begins now. */
export function addAttempt(history: readonly KeptAttempt[], value: unknown): readonly KeptAttempt[] {
  const known = history.find(({ omitted }) => omitted)
  const whole = [...history.filter(({ omitted }) => !omitted), { value, failures: [] }]
  const excess = whole.length - KEPT.first - KEPT.last
  if (excess <= 0) return whole
  const dropped = whole.slice(KEPT.first, KEPT.first + excess)
  const omitted = dropped.reduce(omit, known?.omitted ?? { values: [], errors: [] })
  return [
    ...whole.slice(0, KEPT.first),
    { value: undefined, failures: [], omitted },
    ...whole.slice(KEPT.first + excess),
  ]
}

/**
 * Returns the history with the failure of an atom in the last attempt. Only the first failure of each atom counts: a resumed run reports it
 * again.
 */
export function addFailure(
  history: readonly KeptAttempt[],
  { atom, failure }: { readonly atom: string; readonly failure: Failure },
): readonly KeptAttempt[] | undefined {
  const last = history.at(-1)
  if (!last || last.failures.length >= MAX_FAILURES || last.failures.some((known) => known.atom === atom))
    return undefined
  const failures = [...last.failures, { atom, failure: shortenFailure(failure, 1) }]
  return [...history.slice(0, -1), { ...last, failures }]
}

/** Returns the number of attempts. */
export function countAttempts(history: readonly KeptAttempt[]): number {
  return history.reduce((sum, { omitted }) => sum + (omitted ? countValues(omitted.values) : 1), 0)
}

/** Returns one element for each attempt. The attempts in between have no failures, and the oldest of them have no values. */
export function expandAttempts(history: readonly KeptAttempt[]): readonly RetryAttempt[] {
  if (!history.some(({ omitted }) => omitted)) return history
  return history.flatMap((attempt) => (attempt.omitted ? attempt.omitted.values.flatMap(expandRun) : [attempt]))
}

/** Returns the number of attempts whose values are not kept. */
export function countForgotten(history: readonly KeptAttempt[]): number {
  const runs = history.flatMap(({ omitted }) => omitted?.values ?? [])
  return countValues(runs.filter((run) => !('value' in run)))
}

function countValues(runs: readonly ValueRun[]): number {
  return runs.reduce((sum, { count }) => sum + count, 0)
}

function expandRun({ count, value, step }: ValueRun): readonly RetryAttempt[] {
  const isCounting = step === 1 && typeof value === 'number'
  return Array.from({ length: count }, (_, n) => ({ value: isCounting ? value + n : value, failures: [] }))
}

function omit({ values, errors }: OmittedAttempts, { value, failures }: KeptAttempt): OmittedAttempts {
  const counts = new Map(errors)
  for (const { failure } of failures)
    for (const error of new Set(errorsOf(failure)))
      if (counts.has(error) || counts.size < MAX_ERRORS) counts.set(error, (counts.get(error) ?? 0) + 1)
  return { values: addValue(values, value), errors: [...counts] }
}

function errorsOf({ name, code, causes = [] }: Failure): readonly string[] {
  return [name, ...(code === undefined ? [] : [code]), ...causes.flatMap(errorsOf)]
}

function addValue(runs: readonly ValueRun[], value: unknown): readonly ValueRun[] {
  const last = runs.at(-1)
  const before = runs.slice(0, -1)
  if (last) {
    const { count, value: first, step } = last
    const next = step === 1 && typeof first === 'number' ? first + count : first
    if (isDeepStrictEqual(next, value)) return [...before, { ...last, count: count + 1 }]
    if (count === 1 && typeof first === 'number' && value === first + 1)
      return [...before, { count: 2, value: first, step: 1 }]
  }
  return forgetOldest([...runs, value === undefined ? { count: 1 } : { count: 1, value }])
}

/** Removes the oldest values that have no room, and keeps their number. */
function forgetOldest(runs: readonly ValueRun[]): readonly ValueRun[] {
  let [kept, bytes] = [0, 0]
  for (const run of runs.toReversed()) {
    bytes += sizeOf(run.value)
    if (kept > 0 && (kept >= MAX_VALUES.runs || bytes > MAX_VALUES.bytes)) break
    kept += 1
  }
  const forgotten = runs.slice(0, runs.length - kept)
  return forgotten.length === 0 ? runs : [{ count: countValues(forgotten) }, ...runs.slice(-kept)]
}

function sizeOf(value: unknown): number {
  try {
    return encodePlain(value, 'msgpack').length
  } catch {
    // Such a value cannot be recorded in any case.
    return Number.POSITIVE_INFINITY
  }
}

function shortenFailure({ stack: _, ...failure }: Failure, depth: number): Failure {
  const { message } = failure
  const short = message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)}…` : message
  const { causes, ...rest } = { ...failure, message: short }
  if (!causes || depth >= MAX_CAUSES.depth) return rest
  return { ...rest, causes: causes.slice(0, MAX_CAUSES.each).map((cause) => shortenFailure(cause, depth + 1)) }
}
