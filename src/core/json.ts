/**
 * Reads JSON and numbers of people and other programs exactly, or refuses them. Writes values of boards and logbooks as JSON, which has
 * fewer types.
 */
import { InvalidArgument, isDate } from './errors.ts'

const NUMBER = /-?\d[\d.eE+-]*/y
/** The longest integer that is compared exactly: a longer one is beyond the range of numbers. */
const MAX_DIGITS = 310

/**
 * Returns whether JavaScript reads the number as it is written. Integers must come out exactly; fractions are rounded to the nearest
 * number, as everywhere, but become neither 0 nor infinite.
 *
 * @param text a decimal number, as in JSON
 */
export function isExactNumber(text: string): boolean {
  const value = Number(text)
  if (!Number.isFinite(value)) return false
  if (value === 0) return !/[1-9]/.test(text.split(/e/i)[0] ?? '')
  if (Number.isSafeInteger(value) || !/^[-+]?\d+$/.test(text)) return true
  return text.length <= MAX_DIGITS && BigInt(text) === BigInt(value)
}

/**
 * Parses JSON as `JSON.parse` does. Errors name a position in the text, and quote nothing from it: it may contain secrets.
 *
 * @throws InvalidArgument for text that is not JSON, a number that JavaScript would change, the same key twice in one object, and a key
 * `__proto__`. The message is the end of a sentence: the caller puts the name of the text before it.
 */
export function parseJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new InvalidArgument('is not JSON')
  }
  const fault = findFault(text)
  if (fault !== undefined) throw new InvalidArgument(fault)
  return value
}

/** Finds the first fault of a text that is valid JSON: a number, or a key. */
function findFault(text: string): string | undefined {
  /** The keys of each object around the position, the innermost object last; undefined for a list. */
  const around: (Set<string> | undefined)[] = []
  let isKeyNext = false
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at] ?? ''
    if (sign === '{') around.push(new Set())
    else if (sign === '[') around.push(undefined)
    else if (sign === '}' || sign === ']') around.pop()
    if (sign === '{' || sign === ',') isKeyNext = around.at(-1) !== undefined
    if (sign === '"') {
      const end = endOfText(text, at)
      if (isKeyNext) {
        const fault = keyFault(around.at(-1), String(JSON.parse(text.slice(at, end + 1))))
        if (fault !== undefined) return `${fault}, at character ${at + 1}`
      }
      isKeyNext = false
      at = end
    } else if (sign === '-' || (sign >= '0' && sign <= '9')) {
      NUMBER.lastIndex = at
      const number = NUMBER.exec(text)?.[0] ?? ''
      if (!isExactNumber(number))
        return `has a number that JavaScript cannot represent, at character ${at + 1}: write it as a text, in quotes`
      at += number.length - 1
    }
  }
  return undefined
}

/** Returns the position of the quote that ends the string which begins at `start`. An escaped quote is a part of the string. */
function endOfText(text: string, start: number): number {
  for (let at = start + 1; ; at += 1) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '"' || at >= text.length) return at
  }
}

function keyFault(keys: Set<string> | undefined, key: string): string | undefined {
  if (key === '__proto__') return 'has a key __proto__'
  if (keys?.has(key)) return 'has the same key twice in one object'
  keys?.add(key)
  return undefined
}

/**
 * Returns a value that JSON can encode: large integers, NaN and infinite numbers as text, bytes as base64, dates as ISO text or null, sets
 * as lists, and maps as lists of pairs.
 */
export function jsonable(value: unknown): unknown {
  if (typeof value === 'bigint' || (typeof value === 'number' && !Number.isFinite(value))) return String(value)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (isDate(value)) return value.toJSON()
  if (Array.isArray(value)) return value.map(jsonable)
  if (value instanceof Map || value instanceof Set) return [...value].map(jsonable)
  if ('toJSON' in value && typeof value.toJSON === 'function') return jsonable(value.toJSON())
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, jsonable(item)]))
}

/** Returns the JSON of a value that a board, a logbook or a view may have. */
export function toJson(value: unknown): string {
  return JSON.stringify(jsonable(value)) ?? 'null'
}
