/** What callers without a compiler may get wrong, said at once and by name: a server would answer something else, or nothing. */
import { InvalidArgument } from '../../core/errors.ts'
import { isMisspelt, suggestion } from '../../core/spelling.ts'
import type { Stat } from './records.ts'

/** @throws InvalidArgument unless it is a whole number in that range */
export function assertInteger(
  value: unknown,
  what: string,
  range: { readonly from: number; readonly to: number },
): void {
  const { from, to } = range
  if (typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to) return
  throw new InvalidArgument(`${what}: a whole number from ${from} to ${to} is needed, not ${printable(value)}`)
}

/** @throws InvalidArgument for what stands where 64 bits are needed, if anything does: they make no number of JavaScript's */
export function assertBigint(value: unknown, what: string): void {
  if (value === undefined || typeof value === 'bigint') return
  // Without the value: session ids are secrets.
  throw new InvalidArgument(`${what}: a bigint is needed, not a ${typeof value}`)
}

/** @throws InvalidArgument unless it is one of those */
export function assertOneOf(value: unknown, known: readonly (string | boolean)[], what: string): void {
  if (known.some((each) => each === value)) return
  const names = known.map(String)
  throw new InvalidArgument(`${what}: there is no ${printable(value)}${suggestion(String(value), names)}`)
}

const ANY_VERSION = -1
const VERSION_RANGE = { from: ANY_VERSION, to: 2 ** 31 - 1 }

/**
 * A version as the server reads it; -1 is any.
 *
 * @throws InvalidArgument for what would be sent as another number
 */
export function checkVersion(version: number): number {
  assertInteger(version, 'version', VERSION_RANGE)
  return version
}

/** What operations may be told. The names of a few letters are near to too many others. */
const OPERATION_OPTIONS = [
  'signal',
  'session',
  'timeout',
  'version',
  'aversion',
  'acl',
  'ephemeral',
  'sequential',
  'container',
  'ttl',
  'watch',
  'under',
  'limit',
  'czxid',
] as const
/** Whoever has read a Stat may give it as it is, for its version. */
const STAT_FIELDS = ['mzxid', 'pzxid', 'cversion'] as const satisfies readonly (keyof Stat)[]
const KNOWN_NAMES: ReadonlySet<string> = new Set([
  ...OPERATION_OPTIONS,
  ...STAT_FIELDS,
  'id',
  'mode',
  'kind',
  'handler',
  'here',
])

/**
 * A misspelt `version` would write whatever the znode is at. Other names are let pass: what is given may be an object of
 * the caller's that has these options among other things.
 *
 * @throws InvalidArgument for a name that can only be meant for another
 */
export function checkNames(options: object): void {
  for (const name in options) {
    if (KNOWN_NAMES.has(name)) continue
    const wanted = OPERATION_OPTIONS.find((each) => isMisspelt(name, each))
    if (wanted) throw new InvalidArgument(`there is no option ${JSON.stringify(name)}; did you mean ${wanted}?`)
  }
}

/**
 * What any request is told.
 *
 * @throws InvalidArgument for a name that can only be meant for another, and for a session that is no id of one
 */
export function checkRequestOptions(options: { readonly session?: bigint }): void {
  checkNames(options)
  assertBigint(options.session, 'session: the id of one, such as zookeeper.session.id')
}

/** @throws InvalidArgument for a list that is none */
export function assertList(list: unknown, what: string): void {
  if (!Array.isArray(list)) throw new InvalidArgument(`${what} takes a list, not ${printable(list)}`)
}

function printable(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint') return `${value}n`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
