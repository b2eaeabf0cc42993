/**
 * Redacts secrets by the names of their keys. The name `password` hides the values of `password`, `Password` and `pass_word`
 * in plain data at any depth, and the value after such a word in a text (`password=…`, `"password":"…"`). Redaction is a
 * second line of defence: code must still not log secrets. A redacted text stays as it is when it is redacted again.
 */
import { InvalidArgument, isDate, isError } from './errors.ts'
import type { Failure } from './failure.ts'
import { defined } from './options.ts'

export const REDACTED = '[redacted]'

/** The depth at which values are cut off; nothing that people read is deeper. */
const MAX_DEPTH = 20

export class Redactor {
  readonly #keys: ReadonlySet<string>
  readonly #pattern: RegExp | undefined

  /** @param keys whole names; case, `-` and `_` are ignored. @throws InvalidArgument unless it is a list of names */
  constructor(keys: readonly string[]) {
    if (!Array.isArray(keys) || keys.some((key) => typeof key !== 'string' || normalizeKey(key) === ''))
      throw new InvalidArgument("redact must be a list of key names, such as ['password', 'token']")
    this.#keys = new Set(keys.map(normalizeKey))
    this.#pattern = keyPattern([...this.#keys])
  }

  /** Whether there is nothing to hide. */
  get isEmpty(): boolean {
    return this.#keys.size === 0
  }

  /** Returns a redacted copy of plain data or of an error; copies any other object as JSON would show it. */
  value(value: unknown): unknown {
    return this.#copy(value, [])
  }

  /** Returns the text with the values of the keys redacted. */
  text(text: string): string {
    return this.#pattern ? text.replace(this.#pattern, `$1${REDACTED}`) : text
  }

  /** Returns a copy of plain data in which every text is redacted; the fields stay, even if one has the name of a key. */
  texts<T>(value: T): T {
    return this.#texts(value, 0) as T
  }

  #texts(value: unknown, depth: number): unknown {
    if (this.isEmpty || depth > MAX_DEPTH) return value
    if (typeof value === 'string') return this.text(value)
    if (Array.isArray(value)) return value.map((item) => this.#texts(item, depth + 1))
    if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.#texts(item, depth + 1)]))
  }

  /** Returns a failure whose texts are redacted; its fields stay, even if one has the name of a key. */
  failure({ name, message, stack, causes, ...rest }: Failure): Failure {
    return {
      ...rest,
      name: this.text(name),
      message: this.text(message),
      ...defined({
        stack: stack === undefined ? undefined : this.text(stack),
        causes: causes?.map((cause) => this.failure(cause)),
      }),
    }
  }

  #copy(value: unknown, above: readonly object[]): unknown {
    if (typeof value === 'string') return this.text(value)
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array || isDate(value)) return value
    if (above.length > MAX_DEPTH || above.includes(value)) return '[too deep]'
    const within = [...above, value]
    if (Array.isArray(value)) return value.map((item) => this.#copy(item, within))
    if (isError(value)) return this.#copyOfError(value, within)
    const { toJSON }: { toJSON?: unknown } = value
    if (typeof toJSON === 'function') return this.#copy(toJSON.call(value), within)
    return this.#fields(value, within)
  }

  #fields(value: object, within: readonly object[]): Record<string, unknown> {
    const copies = Object.entries(value).map(([key, item]) => {
      return [key, this.#keys.has(normalizeKey(key)) ? REDACTED : this.#copy(item, within)]
    })
    return Object.fromEntries(copies)
  }

  /** Copies an error as an error. Its `constructor` stays the same, which loggers read. */
  #copyOfError(error: Error, within: readonly object[]): Error {
    const copy = new Error(this.text(String(error.message)))
    const hidden = (value: unknown) => ({ value, enumerable: false, configurable: true, writable: true })
    Object.assign(copy, this.#fields(error, within))
    Object.defineProperties(copy, {
      name: hidden(error.name),
      stack: hidden(this.text(String(error.stack))),
      constructor: hidden(error.constructor),
      ...(error.cause === undefined ? {} : { cause: hidden(this.#copy(error.cause, within)) }),
    })
    return copy
  }
}

function normalizeKey(key: string): string {
  return key.replaceAll(/[-_\s]/g, '').toLowerCase()
}

/** The value after a key. A redacted value stays; a quoted one ends with its quote; an object or a list hides the rest of the text. */
const VALUE_PATTERN = String.raw`(?:\[redacted\]|\\"(?:(?!\\").)*(?:\\"|$)|"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$)|[{[].*|(?<=:\s*)[^,;&}\])\n]+|[^\s,;&}\])]+)`

function keyPattern(keys: readonly string[]): RegExp | undefined {
  if (keys.length === 0) return undefined
  const names = keys.map((key) => [...key].map((letter) => letter.replace(/\W/u, String.raw`\$&`)).join('[-_]?'))
  const name = String.raw`(?<![\p{L}\p{N}])(?:${names.join('|')})`
  const before = String.raw`${name}(?:\\?["'])?${blanks('before')}[:=]${blanks('after')}`
  return new RegExp(`(${before})${VALUE_PATTERN}`, 'giu')
}

/** Returns a pattern that matches blanks without backtracking: otherwise, a text of many blanks would take quadratic time. */
function blanks(name: string): string {
  return String.raw`(?=(?<${name}>\s*))\k<${name}>`
}
