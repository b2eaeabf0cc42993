/** The kinds of values in `jobboard.yaml`: what a value may be, and how it is parsed after its variables were replaced. */
import { z } from 'zod'
import { InvalidArgument } from '../../../core/errors.ts'
import { toBytes } from '../../../core/memory-size.ts'
import { suggestion } from '../../../core/texts.ts'
import { parseDuration, parseRate } from '../shared-options.ts'

/** The kind of a value. `secret` and `uri` are not shown as they are; `data` is plain data, in whose texts variables are replaced. */
type Kind =
  | 'text'
  | 'secret'
  | 'uri'
  | 'module'
  | 'duration'
  | 'size'
  | 'count'
  | 'number'
  | 'choice'
  | 'rate'
  | 'flag'
  | 'data'

/** The kind of a value, with its range or words. */
export interface KindOf {
  readonly kind: Kind
  /** The smallest and the greatest number. */
  readonly least?: number
  readonly most?: number
  /** The words of a choice, or the words that are allowed in place of a duration. */
  readonly words?: readonly string[]
}

/** The kinds of the schemas of single values. */
const KINDS = z.registry<KindOf>()

/** Returns the kind of the schema of a single value; undefined for the schema of a map or a list. */
export function kindOf(schema: z.ZodType): KindOf | undefined {
  const found = KINDS.get(schema)
  return found?.kind === undefined ? undefined : found
}

function ofKind<T extends z.ZodType>(schema: T, kind: KindOf, description: string): T {
  const described = schema.describe(description)
  KINDS.add(described, kind)
  return described
}

export const EMPTY = 'must not be empty'

const anyText = () => z.string().min(1, EMPTY)
/** A text with a variable: its value is checked after the variable was replaced. */
const withVariable = (instead: string) =>
  z.string().regex(/\$\{/, { abort: true, message: `must be ${instead}, or a variable in braces: \${NAME}` })

export const text = (description: string) => ofKind(anyText(), { kind: 'text' }, description)
export const secret = (description: string) => ofKind(anyText(), { kind: 'secret' }, description)
export const uri = (description: string) => ofKind(anyText(), { kind: 'uri' }, description)
export const module = (description: string) => ofKind(anyText(), { kind: 'module' }, description)
export const flag = (description: string) => ofKind(z.boolean(), { kind: 'flag' }, description)
export const data = (description: string) => ofKind(z.record(z.string(), z.unknown()), { kind: 'data' }, description)
export const number = (description: string) => ofKind(z.number(), { kind: 'number' }, description)

export function duration<const W extends readonly string[] = readonly []>(description: string, words?: W) {
  const schema = z.union([z.int().min(0), anyText()])
  return ofKind(schema, { kind: 'duration', ...(words ? { words } : {}) }, description)
}

export function size(description: string) {
  return ofKind(z.union([z.int().min(1), anyText()]), { kind: 'size' }, description)
}

export function rate(description: string) {
  return ofKind(anyText(), { kind: 'rate' }, description)
}

/** Returns the schema of a whole number: from 1, or from `least`. */
export function count(description: string, { least = 1, most }: { least?: number; most?: number } = {}) {
  const whole = most === undefined ? z.int().min(least) : z.int().min(least).max(most)
  const schema = z.union([whole, withVariable('a whole number')])
  return ofKind(schema, { kind: 'count', least, ...(most === undefined ? {} : { most }) }, description)
}

export function choice<const W extends readonly [string, ...string[]]>(description: string, words: W) {
  return ofKind(z.union([z.enum(words), withVariable('one of the words')]), { kind: 'choice', words }, description)
}

/** The smallest size that a file may have. The pool checks the smallest value of each of its options. */
const MIN_SIZE_BYTES = 1_024

/**
 * Parses a value whose variables were replaced.
 *
 * @param what the name of the value, for errors
 * @throws InvalidArgument
 */
export function parseValue({ kind, least = 1, most, words }: KindOf, value: unknown, what: string): unknown {
  switch (kind) {
    case 'duration':
      if (typeof value === 'string' && words?.includes(value)) return value
      if (typeof value === 'string' && /^\d+$/.test(value.trim()))
        throw new InvalidArgument(`${what}: '${value}' has no unit: write ${value}s, or ${value}ms for milliseconds`)
      // The result is a text, as a user would type it on the command line.
      parseDuration(String(value), what)
      return String(value)
    case 'size':
      toBytes(value as never, { what, least: MIN_SIZE_BYTES })
      return value
    case 'rate':
      parseRate(String(value), what)
      return value
    case 'count': {
      const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
      if (
        Number.isSafeInteger(number) &&
        Number(number) >= least &&
        Number(number) <= (most ?? Number.MAX_SAFE_INTEGER)
      )
        return number
      const range = most === undefined ? `from ${least}` : `from ${least} to ${most}`
      throw new InvalidArgument(`${what} must be a whole number ${range}, got ${JSON.stringify(value)}`)
    }
    case 'choice':
      if (words?.includes(String(value))) return value
      throw new InvalidArgument(
        `${what} must be one of ${words?.join(', ')}, got ${JSON.stringify(value)}${suggestion(String(value), words ?? [])}`,
      )
    default:
      return value
  }
}

/** Returns whether a text is a URI: a scheme and a colon. Every other text is the name of a board or of logbooks. */
export function isUri(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/i.test(text)
}

/**
 * Returns whether a module is named by a path: it begins with a dot, or is a JavaScript or TypeScript file. Every other one is a package.
 */
export function isModulePath(name: string): boolean {
  return /^\.{1,2}\/|\.[cm]?[jt]sx?$/.test(name)
}

/** Returns what a value of a kind must be, for errors. */
export function describeKind({ kind, least = 1, most, words = [] }: KindOf): string {
  switch (kind) {
    case 'duration':
      return ["a duration such as '10s'", ...words].join(' or ')
    case 'size':
      return "a size such as '512MB'"
    case 'count':
      return most === undefined ? `a whole number from ${least}` : `a whole number from ${least} to ${most}`
    case 'choice':
      return `one of ${words.join(', ')}`
    case 'rate':
      return "a number and a time, such as '100/1m'"
    case 'flag':
      return 'true or false'
    case 'data':
      return 'a map'
    case 'number':
      return 'a number'
    default:
      return 'a text'
  }
}
