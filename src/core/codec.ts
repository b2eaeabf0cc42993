/** How records are written: msgpack (the default) or JSON (what TaskFlow reads). Values are plain data in both. */
import { Packr } from 'msgpackr'
import { InvalidArgument } from './errors.ts'

export type Encoding = 'msgpack' | 'json'

/**
 * `useRecords: false`: shared structures would make one record unreadable without another. `copyBuffers`: bytes in what
 * was decoded would be a window on the encoded record, and changing them would change it.
 */
const packr = new Packr({ useRecords: false, mapsAsObjects: true, copyBuffers: true })

/**
 * @throws InvalidArgument for what is no plain data: functions, symbols, a structure that contains itself, instances of
 * classes (a Map or an Error would come back as something else), a bigint of more than 64 bits
 */
export function encode(value: unknown, encoding: Encoding): Uint8Array {
  assertPlain(value, [])
  try {
    return encoding === 'json' ? Buffer.from(JSON.stringify(value) ?? 'null') : new Uint8Array(packr.pack(value))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new InvalidArgument(`cannot be stored as ${encoding}: ${reason}`, { cause: error })
  }
}

/**
 * Bytes within come back as Uint8Array, whatever kind of array the record itself lies in.
 *
 * @throws Error when the bytes are not of this encoding
 */
export function decode(bytes: Uint8Array, encoding: Encoding): unknown {
  if (encoding === 'json') return JSON.parse(Buffer.from(bytes).toString('utf8'))
  return packr.unpack(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength))
}

/**
 * The value as it comes back from a record: the same as to encode and to decode it, and quicker for what most values are
 * made of.
 *
 * @throws InvalidArgument as {@link encode}
 */
export function asStored(value: unknown): unknown {
  const copy = simpleCopy(value, 0)
  return copy === NOT_SIMPLE ? decode(encode(value, 'msgpack'), 'msgpack') : copy
}

const NOT_SIMPLE = Symbol('not simple')

/** Of what no encoding changes; anything else, be it rare or refused, is for the codec to judge. */
function simpleCopy(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return Object.is(value, -0) ? NOT_SIMPLE : value
    case 'object':
      if (value === null) return value
      if (depth > SIMPLE_DEPTH) return NOT_SIMPLE
      if (Array.isArray(value)) return simpleList(value, depth)
      return Object.getPrototypeOf(value) === Object.prototype ? simpleObject(value, depth) : simpleDate(value)
    default:
      return NOT_SIMPLE
  }
}

const SIMPLE_DEPTH = 20

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
    if (copy === NOT_SIMPLE || key === '__proto__') return NOT_SIMPLE
    copies[key] = copy
  }
  return copies
}

function simpleDate(value: object): unknown {
  if (Object.getPrototypeOf(value) !== Date.prototype) return NOT_SIMPLE
  const time = (value as Date).getTime()
  return Number.isNaN(time) ? NOT_SIMPLE : new Date(time)
}

/** A cycle would never end, and a function or a Map be lost without a word: all are refused with the place named. */
function assertPlain(value: unknown, path: readonly string[]): void {
  if (typeof value === 'function' || typeof value === 'symbol') throw notPlain(`a ${typeof value}`, path)
  if (typeof value === 'bigint' && (value > LARGEST || value < SMALLEST))
    throw notPlain('a bigint beyond 64 bits', path)
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw notPlain('an invalid Date', path)
    return
  }
  if (!Array.isArray(value) && !isBare(value)) throw notPlain(`an instance of ${value.constructor?.name}`, path)
  if (path.length >= DEEPEST) throw notPlain('nested too deeply, or contains itself', path)
  for (const [key, item] of Object.entries(value)) assertPlain(item, [...path, key])
}

const DEEPEST = 100
const LARGEST = 2n ** 64n - 1n
const SMALLEST = -(2n ** 63n)

/** Made by `{}`, in this realm or another, or without a prototype. */
function isBare(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function notPlain(what: string, path: readonly string[]): InvalidArgument {
  const place = path.slice(0, 6).join('.') || 'the value itself'
  return new InvalidArgument(
    `cannot be stored: ${place} is ${what}; use plain data (objects, arrays, text, numbers, Date, Uint8Array)`,
  )
}
