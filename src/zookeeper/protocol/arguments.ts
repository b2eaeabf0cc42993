/**
 * Checks of arguments for callers that do not use the compiler: a server would answer with another error, or not at
 * all.
 */
import { InvalidArgument } from '../../core/errors.ts'
import { isMisspelt, suggestion } from '../../core/texts.ts'
import { MAX_INT32 } from './jute.ts'
import type { Stat } from './records.ts'

/**
 * Checks a whole number.
 *
 * @throws InvalidArgument unless it is a whole number in that range
 */
export function assertInteger(
  value: unknown,
  what: string,
  range: { readonly from: number; readonly to: number },
): void {
  const { from, to } = range
  if (typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to) return
  throw new InvalidArgument(`${what} must be a whole number from ${from} to ${to}, got ${printable(value)}`)
}

/**
 * Checks an optional 64-bit value: a JavaScript number cannot hold it.
 *
 * @throws InvalidArgument unless it is a bigint or undefined
 */
export function assertBigint(value: unknown, what: string): void {
  if (value === undefined || typeof value === 'bigint') return
  // The message omits the value: session ids are secrets.
  throw new InvalidArgument(`${what} must be a bigint, got a ${typeof value}`)
}

/**
 * Checks a choice.
 *
 * @throws InvalidArgument unless it is one of the known values
 */
export function assertOneOf(value: unknown, known: readonly (string | boolean)[], what: string): void {
  if (known.some((each) => each === value)) return
  const names = known.map(String)
  throw new InvalidArgument(`${what}: unknown value ${printable(value)}${suggestion(String(value), names)}`)
}

const ANY_VERSION = -1
const VERSION_RANGE = { from: ANY_VERSION, to: MAX_INT32 }

/**
 * Checks a version; -1 is any.
 *
 * @throws InvalidArgument for values that would be sent as another number
 */
export function checkVersion(version: number): number {
  assertInteger(version, 'version', VERSION_RANGE)
  return version
}

/** Options of operations. Very short names are excluded: they resemble too many others. */
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
/** Fields of a Stat, which callers may pass as it is, for its version. */
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
 * Checks the names of options: a misspelt `version` would overwrite any version of the znode. Other names are accepted,
 * because callers may pass an object of their own that has these options among other things.
 *
 * @throws InvalidArgument for a name that resembles an option
 */
export function checkNames(options: object): void {
  for (const name in options) {
    if (KNOWN_NAMES.has(name)) continue
    const wanted = OPERATION_OPTIONS.find((each) => isMisspelt(name, each))
    if (wanted) throw new InvalidArgument(`unknown option ${JSON.stringify(name)}; did you mean ${wanted}?`)
  }
}

/**
 * Checks the options that every request has.
 *
 * @throws InvalidArgument for a name that resembles an option, and for an invalid session id
 */
export function checkRequestOptions(options: { readonly session?: bigint }): void {
  checkNames(options)
  assertBigint(options.session, 'session (an id such as zookeeper.session.id)')
}

/** @throws InvalidArgument unless it is a list */
export function assertList(list: unknown, what: string): void {
  if (!Array.isArray(list)) throw new InvalidArgument(`${what} takes a list, got ${printable(list)}`)
}

function printable(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint') return `${value}n`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/**
 * Checks data, for callers that do not use the compiler: a text would be stored as that many zeros.
 *
 * @param data undefined means null
 * @throws InvalidArgument unless it is bytes, null or undefined
 */
export function checkData(data: Uint8Array | null | undefined): Uint8Array | null {
  if (data === undefined || data === null) return null
  if (data instanceof Uint8Array) return data
  throw new InvalidArgument(
    `data of a znode must be bytes or null, got a ${typeof data}; use Buffer.from to convert a text`,
  )
}
