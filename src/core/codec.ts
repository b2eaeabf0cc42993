/** Encodes records as msgpack (the default) or as JSON (which TaskFlow reads). Values are plain data in both. */

import { Packr } from 'msgpackr'
import { InvalidArgument, isDate, messageOf } from './errors.ts'
import {
  BOXED_NUMBER_BYTES,
  checkMsgpack,
  ENTRY_BYTES,
  ITEM_BYTES,
  LIST_BYTES,
  MAX_NESTING,
  OBJECT_BYTES,
  TEXT_BYTES,
} from './msgpack-check.ts'
import { ILL_FORMED } from './texts.ts'

export type Encoding = 'msgpack' | 'json'

export { MAX_MEMORY_PER_BYTE } from './msgpack-check.ts'

/**
 * `useRecords: false`: shared structures would make one record unreadable without another. `copyBuffers`: without it, bytes
 * in a decoded value are a view of the encoded record, and changing them changes the record. `structuredClone: false`: when
 * it is omitted, the decoder follows references in the bytes, and a few hundred bytes become gigabytes.
 */
const packr = new Packr({ useRecords: false, mapsAsObjects: true, copyBuffers: true, structuredClone: false })

/**
 * Encodes a value of plain data.
 *
 * @throws InvalidArgument for anything but plain data: functions, symbols, a structure that contains itself, instances of
 * classes (a Map or an Error would come back as something else), a bigint of more than 64 bits, a key `__proto__`; in msgpack, half of a
 * surrogate pair
 */
export function encode(value: unknown, encoding: Encoding): Uint8Array {
  const fault = findUnencodable(value, { depth: 0, encoding })
  if (fault) throw notPlainError(fault)
  return encodePlain(value, encoding)
}

/** Encodes as {@link encode} does, without a check: the value was decoded or checked before. */
export function encodePlain(value: unknown, encoding: Encoding): Uint8Array {
  try {
    return encoding === 'json' ? Buffer.from(JSON.stringify(value) ?? 'null') : new Uint8Array(packr.pack(value))
  } catch (error) {
    const reason = messageOf(error)
    throw new InvalidArgument(`cannot be stored as ${encoding}: ${reason}`, { cause: error })
  }
}

/**
 * Decodes a record. Accepts only plain data, whichever program wrote the bytes. Byte values in the record come back as
 * Uint8Array, whatever the type of the array that holds the record.
 *
 * @throws Error when the bytes are not of this encoding, or hold what {@link encode} refuses
 */
export function decode(bytes: Uint8Array, encoding: Encoding): unknown {
  return decodeWeighed(bytes, encoding).value
}

/** A decoded value, and an estimate of the memory that it takes, in bytes. */
export interface WeighedValue {
  readonly value: unknown
  readonly memory: number
}

/**
 * Decodes a record as {@link decode} does, and estimates its size in memory: 500 KB of empty objects take 32 MB.
 *
 * @param options.most the largest estimate that is accepted, in bytes; msgpack above it is not decoded
 * @throws Error as {@link decode}, and for a value above the limit
 */
export function decodeWeighed(
  bytes: Uint8Array,
  encoding: Encoding,
  { most = Number.POSITIVE_INFINITY }: { readonly most?: number } = {},
): WeighedValue {
  if (encoding === 'json') {
    const value: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
    return { value, memory: weighJson(value, most) }
  }
  const own = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const memory = checkMsgpack(own, most)
  return { value: packr.unpack(own), memory }
}

/**
 * Estimates the memory that a record takes once it is decoded, in bytes.
 *
 * @throws Error as {@link decodeWeighed}
 */
export function weigh(bytes: Uint8Array, encoding: Encoding, most: number): number {
  return encoding === 'json' ? decodeWeighed(bytes, encoding, { most }).memory : checkMsgpack(bytes, most)
}

/** @throws Error for what is nested too deeply, or larger than `most` in memory */
function weighJson(value: unknown, most: number): number {
  let memory = 0
  const add = (part: unknown, depth: number): void => {
    if (typeof part === 'string') memory += TEXT_BYTES + part.length
    else if (typeof part === 'number') memory += Number.isInteger(part) ? 0 : BOXED_NUMBER_BYTES
    if (memory > most)
      throw new Error(`takes more than ${most} bytes of memory once it is decoded; store less structure`)
    if (typeof part !== 'object' || part === null) return
    if (depth >= MAX_NESTING) throw new Error(`is nested deeper than ${MAX_NESTING} levels`)
    if (Array.isArray(part)) {
      memory += LIST_BYTES + ITEM_BYTES * part.length
      for (const item of part) add(item, depth + 1)
      return
    }
    memory += OBJECT_BYTES
    for (const [key, item] of Object.entries(part)) {
      memory += ENTRY_BYTES + TEXT_BYTES + key.length
      add(item, depth + 1)
    }
  }
  add(value, 0)
  return memory
}

/**
 * Returns the value as it comes back from a record. The result is the same as of encoding and decoding the value; for most
 * values it is computed faster.
 *
 * @throws InvalidArgument as {@link encode}
 */
export function roundTrip(value: unknown): unknown {
  const copy = simpleCopy(value, 0)
  return copy === NOT_SIMPLE ? decode(encode(value, 'msgpack'), 'msgpack') : copy
}

/**
 * Returns a copy of a value that was decoded, or that {@link encode} accepts. For most values it takes a tenth of the time of `structuredClone`, which
 * in Node.js 20 sends the value through a channel.
 */
export function copyPlain<T>(value: T): T {
  const copy = simpleCopy(value, 0)
  return copy === NOT_SIMPLE ? structuredClone(value) : (copy as T)
}

const NOT_SIMPLE = Symbol('not simple')

/** Copies a value that no encoding changes. Returns NOT_SIMPLE for all others, rare or refused: the codec handles these. */
function simpleCopy(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? value : NOT_SIMPLE
    case 'boolean':
      return value
    case 'number':
      return Object.is(value, -0) ? NOT_SIMPLE : value
    case 'object':
      if (value === null) return value
      if (depth > MAX_SIMPLE_DEPTH) return NOT_SIMPLE
      if (Array.isArray(value)) return simpleList(value, depth)
      return Object.getPrototypeOf(value) === Object.prototype ? simpleObject(value, depth) : simpleDate(value)
    default:
      return NOT_SIMPLE
  }
}

const MAX_SIMPLE_DEPTH = 20

function simpleList(list: readonly unknown[], depth: number): unknown {
  const copies: unknown[] = []
  for (const item of list) {
    const copy = simpleCopy(item, depth + 1)
    if (copy === NOT_SIMPLE) return NOT_SIMPLE
    copies.push(copy)
  }
  return copies
}

function simpleObject(object: object, depth: number): unknown {
  const copies: Record<string, unknown> = {}
  for (const key of Object.keys(object)) {
    const copy = simpleCopy((object as Record<string, unknown>)[key], depth + 1)
    if (copy === NOT_SIMPLE || key === '__proto__' || !key.isWellFormed()) return NOT_SIMPLE
    copies[key] = copy
  }
  return copies
}

function simpleDate(value: object): unknown {
  if (!isDate(value)) return NOT_SIMPLE
  const time = value.getTime()
  return Number.isNaN(time) ? NOT_SIMPLE : new Date(time)
}

/** A value that is not plain data, and the path to it, the innermost step first. */
interface UnencodableValue {
  readonly what: string
  readonly path: string[]
}

/**
 * Finds the first value that cannot be encoded. A cycle would never end, and a function or a Map would be lost silently:
 * all are refused by an error that names their place. The path is built only when there is such a value.
 */
function findUnencodable(
  value: unknown,
  at: { readonly depth: number; readonly encoding: Encoding },
): UnencodableValue | undefined {
  const what = findUnencodableIn(value, at)
  if (what !== undefined) return { what, path: [] }
  if (typeof value !== 'object' || value === null || isScalar(value)) return undefined
  const within = { ...at, depth: at.depth + 1 }
  for (const key of Object.keys(value)) {
    // The decoder takes this key for an attack, and returns it under another name.
    if (at.encoding === 'msgpack' && (key === '__proto__' || !key.isWellFormed()))
      return { what: 'a key that msgpack cannot carry', path: [key.toWellFormed()] }
    const fault = findUnencodable((value as Readonly<Record<string, unknown>>)[key], within)
    if (!fault) continue
    fault.path.push(key)
    return fault
  }
  return undefined
}

function findUnencodableIn(
  value: unknown,
  { depth, encoding }: { readonly depth: number; readonly encoding: Encoding },
): string | undefined {
  switch (typeof value) {
    case 'string':
      // JSON has escapes for half a surrogate pair and keeps it. UTF-8 has none: another text would come back.
      return encoding === 'json' || value.isWellFormed() ? undefined : `a text that ${ILL_FORMED}`
    case 'function':
    case 'symbol':
      return `a ${typeof value}`
    case 'bigint':
      return value > MAX_INTEGER || value < MIN_INTEGER ? 'a bigint of more than 64 bits' : undefined
    case 'object':
      return value === null ? undefined : findUnencodableInObject(value, depth)
    default:
      return undefined
  }
}

function findUnencodableInObject(value: object, depth: number): string | undefined {
  // The encoder knows only the dates of its own realm: another one is refused below, as an instance of a class.
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : undefined
  if (isScalar(value)) return undefined
  if (!Array.isArray(value) && !isPlainObject(value)) return `an instance of ${value.constructor?.name}`
  return depth >= MAX_NESTING ? 'nested too deeply, or contains itself' : undefined
}

/** Returns whether an object of the language is a single value in a record. */
function isScalar(value: object): boolean {
  return value instanceof Uint8Array || value instanceof Date
}

const MAX_INTEGER = 2n ** 64n - 1n
const MIN_INTEGER = -(2n ** 63n)

/** Returns whether the object was made by `{}`, in this realm or another, or has no prototype. */
function isPlainObject(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/**
 * Returns the error for a value that {@link encode} has refused.
 *
 * @param what the name of the value, such as `the result of task hash`
 */
export function unstorableError(what: string, cause: unknown): InvalidArgument {
  const why = cause instanceof InvalidArgument ? cause.message : `cannot be stored: ${String(cause)}`
  return new InvalidArgument(`${what} ${why}`, { cause })
}

function notPlainError({ what, path }: UnencodableValue): InvalidArgument {
  const place = path.reverse().slice(0, 6).join('.') || 'the value itself'
  return new InvalidArgument(
    `cannot be stored: ${place} is ${what}; use plain data (objects, arrays, text, numbers, Date, Uint8Array)`,
  )
}

/** Returns a decoded value that is an object of fields, not a list, a date or bytes; undefined for every other value. */
export function toFields(value: unknown): Readonly<Record<string, unknown>> | undefined {
  const isFields = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  return isFields ? (value as Readonly<Record<string, unknown>>) : undefined
}
