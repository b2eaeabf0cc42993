/**
 * Checks values that another process has stored. Every client that can write to the servers can store any value, so each kind of record has one
 * check of all its parts. All code that reads the record relies on this check.
 */
import { toFields } from '../../core/codec.ts'
import { InvalidPosting } from '../../core/errors.ts'
import { isTime } from '../../core/time.ts'

/** A function that returns a value as a `T`, with its known parts only: an unchecked part could break later code. @throws InvalidPart */
export type Parser<T> = (value: unknown) => T

/** The path of the first part of a value that is not valid; empty for the value itself. */
class InvalidPart extends Error {
  readonly path: string

  constructor(path: string) {
    super(path)
    this.path = path
  }
}

/** Returns the value as the parser returns it. @throws InvalidPosting that names the part that is not valid */
export function parseStored<T>(value: unknown, parse: Parser<T>, what: string): T {
  try {
    return parse(value)
  } catch (error) {
    if (!(error instanceof InvalidPart)) throw error
    throw new InvalidPosting(
      `${what} cannot be read: ${error.path === '' ? 'it is not a record' : `${error.path} is not valid`}`,
    )
  }
}

/** Returns a parser that accepts values that fulfil a condition. */
export function where<T>(isValid: (value: unknown) => value is T): Parser<T> {
  return (value) => {
    if (isValid(value)) return value
    throw new InvalidPart('')
  }
}

export const text: Parser<string> = where((value) => typeof value === 'string')
export const anything: Parser<unknown> = (value) => value
/** Milliseconds since 1970 that a `Date` can have. */
export const time: Parser<number> = where(isTime)
export const count: Parser<number> = where(isCount)

/**
 * Returns the row of a job if its numbers are valid: a job without times would have no place in the order of the jobs.
 *
 * @throws InvalidPosting for an invalid number
 */
export function checkRow<
  T extends { readonly revision: number; readonly postedAt: number; readonly writtenAt: number },
>(row: T): T {
  if (isTime(row.postedAt) && isTime(row.writtenAt) && Number.isSafeInteger(row.revision)) return row
  throw new InvalidPosting('has a row with an invalid revision or time')
}

/** Returns whether the value is a whole number from 0. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/** Returns whether the value is a number of milliseconds from 0. */
export function isDuration(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

/** Returns a parser that accepts only the given values. */
export function exactly<const T>(...values: readonly T[]): Parser<T> {
  return where((value): value is T => values.some((known) => known === value))
}

/** Returns a parser that also accepts undefined. */
export function optional<T>(parse: Parser<T>): Parser<T | undefined> {
  return (value) => (value === undefined ? undefined : parse(value))
}

/** Returns a parser of a list whose items may depend on their positions. */
export function listOf<T>(
  parse: (value: unknown, index: number, length: number) => T,
  { most = Number.POSITIVE_INFINITY } = {},
): Parser<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value) || value.length > most) throw new InvalidPart('')
    return value.map((item, index) => within(String(index), () => parse(item, index, value.length)))
  }
}

/** Returns a parser of an object with any field names, whose values are all of one kind. */
export function mapOf<T>(parse: Parser<T>): Parser<Readonly<Record<string, T>>> {
  return (value) => {
    const entries = Object.entries(fieldsIn(value))
    return Object.fromEntries(entries.map(([name, item]) => [name, within(name, () => parse(item))]))
  }
}

/** Returns a parser of an object with these fields. */
export function fieldsOf<T extends object>(parsers: { readonly [K in keyof T]-?: Parser<T[K]> }): Parser<T> {
  const names = Object.keys(parsers) as (keyof T & string)[]
  return (value) => {
    const fields = fieldsIn(value)
    const parsed: Partial<T> = {}
    for (const name of names) {
      const part = within(name, () => parsers[name](Object.hasOwn(fields, name) ? fields[name] : undefined))
      if (part !== undefined) parsed[name] = part
    }
    return parsed as T
  }
}

/** Returns a parser that also checks a condition for the whole value, such as a relation between its parts. */
export function which<T>(parse: Parser<T>, isValid: (value: T) => boolean): Parser<T> {
  return (value) => {
    const parsed = parse(value)
    if (isValid(parsed)) return parsed
    throw new InvalidPart('')
  }
}

function fieldsIn(value: unknown): Readonly<Record<string, unknown>> {
  const fields = toFields(value)
  if (fields) return fields
  throw new InvalidPart('')
}

function within<T>(name: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw error instanceof InvalidPart ? new InvalidPart(error.path === '' ? name : `${name}.${error.path}`) : error
  }
}
