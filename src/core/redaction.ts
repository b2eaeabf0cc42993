/**
 * Secrets kept out of what people read, by the names of their keys: `password` hides what stands under `password`,
 * `Password` and `pass_word` in plain data at any depth, and what follows such a word in a text (`password=…`,
 * `"password":"…"`). It is a net under careful work, and no replacement for it.
 */
import { InvalidArgument } from './errors.ts'
import type { Failure } from './failure.ts'

export const REDACTED = '[redacted]'

/** Deeper than anything that people read. */
const MAX_DEPTH = 20

export class Redactor {
  readonly #keys: ReadonlySet<string>
  readonly #pattern: RegExp | undefined

  /** @param keys whole names; case, `-` and `_` do not matter. @throws InvalidArgument for what is no list of names */
  constructor(keys: readonly string[]) {
    if (!Array.isArray(keys) || keys.some((key) => typeof key !== 'string' || normalizeKey(key) === ''))
      throw new InvalidArgument("redact: a list of the names of keys, such as ['password', 'token']")
    this.#keys = new Set(keys.map(normalizeKey))
    this.#pattern = keyPattern([...this.#keys])
  }

  /** Whether there is nothing to hide. */
  get isEmpty(): boolean {
    return this.#keys.size === 0
  }

  /** A copy of plain data, or of an error; of anything else as it would be in JSON. */
  value(value: unknown): unknown {
    return this.#copy(value, [])
  }

  text(text: string): string {
    return this.#pattern ? text.replace(this.#pattern, `$1${REDACTED}`) : text
  }

  /** Returns a failure whose texts are redacted; its shape stays, whatever its fields are named. */
  failure({ name, message, stack, causes, ...rest }: Failure): Failure {
    return {
      ...rest,
      name: this.text(name),
      message: this.text(message),
      ...(stack === undefined ? {} : { stack: this.text(stack) }),
      ...(causes === undefined ? {} : { causes: causes.map((cause) => this.failure(cause)) }),
    }
  }

  #copy(value: unknown, above: readonly object[]): unknown {
    if (typeof value === 'string') return this.text(value)
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array || value instanceof Date)
      return value
    if (above.length > MAX_DEPTH || above.includes(value)) return '[too deep]'
    const within = [...above, value]
    if (Array.isArray(value)) return value.map((item) => this.#copy(item, within))
    if (value instanceof Error) return this.#copyOfError(value, within)
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

  /** An error still, of the same class for whoever asks its constructor, as loggers do. */
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

/** A value in quotes ends with them; an object or a list may hold anything, and hides all that follows it. */
const VALUE_PATTERN = String.raw`(?:\\"(?:(?!\\").)*(?:\\"|$)|"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$)|[{[].*|(?<=:\s*)[^,;&}\])\n]+|[^\s,;&}\])]+)`

function keyPattern(keys: readonly string[]): RegExp | undefined {
  if (keys.length === 0) return undefined
  const names = keys.map((key) => [...key].map((letter) => letter.replace(/\W/u, String.raw`\$&`)).join('[-_]?'))
  const name = String.raw`(?<![\p{L}\p{N}])(?:${names.join('|')})`
  return new RegExp(String.raw`(${name}(?:\\?["'])?\s*[:=]\s*)${VALUE_PATTERN}`, 'giu')
}
