/**
 * The language of the search box: words, and fields with values.
 *
 *     resize flow:import state:waiting,delayed attempts:>1 store.customer.id=42 reason:"timeout after … ms"
 *
 * A word is searched in the name, flow, key, owner and reasons, and is the start or the end of a uuid. All parts must match. In quotes, a
 * backslash before `*` or `…` takes away its meaning. `group:` is the exact text of a group of the trash.
 */
import { PRIORITIES } from '../../board/internal.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { shortenText, suggestion } from '../../core/texts.ts'

/** The fields that a search may name. */
export const FIELDS = [
  ...(['name', 'flow', 'version', 'state', 'key', 'resource', 'limit', 'owner', 'schedule', 'batch'] as const),
  ...(['priority', 'queue', 'attempts', 'reason', 'group', 'uuid'] as const),
] as const
export type Field = (typeof FIELDS)[number]

export const SEARCH_STATES = ['waiting', 'delayed', 'running', 'trashed', 'done'] as const
export type SearchState = (typeof SEARCH_STATES)[number]

export type Comparison = '<' | '<=' | '=' | '>=' | '>'

export type Term =
  | { readonly kind: 'word'; readonly text: string }
  | {
      readonly kind: 'field'
      readonly field: Exclude<Field, 'state' | 'attempts' | 'group'>
      readonly pattern: Pattern
    }
  | { readonly kind: 'group'; readonly text: string }
  | { readonly kind: 'attempts'; readonly comparison: Comparison; readonly count: number }
  | { readonly kind: 'store'; readonly path: readonly string[]; readonly value: string; readonly isAny: boolean }

/** The texts between the wildcards of a value. */
export type Pattern = readonly string[]

/** Marks a wildcard in the value of a token. A search with this character is refused. */
const WILDCARD = '\uffff'

export interface Search {
  readonly terms: readonly Term[]
  /** The states that are searched; undefined where the text names none. */
  readonly states: ReadonlySet<SearchState> | undefined
  /** Whether stores are read: that needs the right `values`. */
  readonly readsStores: boolean
  /** Whether owners of running jobs are read. */
  readonly readsOwners: boolean
}

const MAX_TEXT = 2_000
const MAX_TERMS = 20

/** Parses the text of a search. @throws InvalidArgument, and nothing else, for any text */
export function parseSearch(text: string): Search {
  if (text.length > MAX_TEXT) throw new InvalidArgument(`a search has at most ${MAX_TEXT} characters`)
  if (text.includes(WILDCARD)) throw new InvalidArgument('a search must not contain the character U+FFFF')
  const tokens = tokenize(text)
  if (tokens.length > MAX_TERMS) throw new InvalidArgument(`a search has at most ${MAX_TERMS} parts`)
  const terms: Term[] = []
  let states: Set<SearchState> | undefined
  for (const token of tokens) {
    const { field, value } = token
    if (field === 'state') {
      const named = value.split(',').map(toState)
      states = new Set(states ? named.filter((state) => states?.has(state)) : named)
    } else terms.push(toTerm(token))
  }
  return {
    ...{ terms, states },
    readsStores: terms.some(({ kind }) => kind === 'store'),
    readsOwners: terms.some((term) => term.kind === 'word' || (term.kind === 'field' && term.field === 'owner')),
  }
}

interface Token {
  /** The text before the colon, or before the sign of a store; undefined for a word. */
  readonly field?: string
  readonly value: string
  /** The value with its wildcards marked by {@link WILDCARD}. */
  readonly marked: string
}

/** A field and its value, or a word; either may be in quotes, in which a backslash makes the next character an ordinary one. */
const TOKEN = /(?:([a-z][\w.-]*)([:=]))?(?:"((?:[^"\\]|\\.)*)("?)|(\S*))/gisy

/** Splits the text into words and fields. @throws InvalidArgument */
function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  for (;;) {
    while (at < text.length && /\s/.test(text.charAt(at))) at += 1
    if (at >= text.length) return tokens
    TOKEN.lastIndex = at
    const found = TOKEN.exec(text)
    if (!found) throw new InvalidArgument(`the search cannot be read from '${shortenText(text.slice(at))}' on`)
    const [all, field, sign, quoted, closing, plain] = found
    at += all.length
    if (quoted !== undefined && closing === '')
      throw new InvalidArgument('the search has an opening quote without a closing one')
    const value = quoted === undefined ? (plain ?? '') : quoted.replace(/\\(.)/gs, '$1')
    const marked = quoted === undefined ? markWildcards(plain ?? '') : markUnescaped(quoted)
    const isField = field !== undefined && (sign === ':' || /^store\./i.test(field))
    if (!isField) {
      const word = field === undefined ? value : `${field}${sign}${value}`
      tokens.push({ value: word, marked: word })
    } else tokens.push({ field: field.toLowerCase().startsWith('store.') ? field : field.toLowerCase(), value, marked })
    if (value === '' && isField && quoted === undefined)
      throw new InvalidArgument(`${field}${sign} needs a value after it`)
  }
}

/** Returns a text between quotes without its backslashes, and with the wildcards marked that have none. */
function markUnescaped(quoted: string): string {
  return quoted.replace(/\\(.)|[*…]/gs, (_, escaped?: string) => escaped ?? WILDCARD)
}

function markWildcards(text: string): string {
  return text.replace(/[*…]/g, WILDCARD)
}

/** Parses a word or a field. @throws InvalidArgument */
function toTerm({ field, value, marked }: Token): Term {
  if (field === undefined) return { kind: 'word', text: value.toLowerCase() }
  if (/^store\./i.test(field)) return { kind: 'store', path: toPath(field), value, isAny: marked === WILDCARD }
  if (field === 'attempts') return toAttempts(value)
  if (field === 'group') return { kind: 'group', text: value }
  if (field === 'priority' && !marked.includes(WILDCARD)) assertPriority(value)
  const known = FIELDS.find((one) => one === field)
  if (known && known !== 'state' && known !== 'attempts' && known !== 'group')
    return { kind: 'field', field: known, pattern: toPattern(marked) }
  throw new InvalidArgument(
    `the search has no field ${shortenText(field)}${suggestion(field, [...FIELDS, 'store.PATH'])}; to search for a word with a colon, put it in quotes`,
  )
}

/** Checks the name of a priority. @throws InvalidArgument */
function assertPriority(value: string): void {
  if (value === '' || PRIORITIES.some((priority) => priority === value.toUpperCase())) return
  const names = PRIORITIES.map((priority) => priority.toLowerCase()).join(', ')
  throw new InvalidArgument(`priority must be one of ${names}, got '${shortenText(value)}'`)
}

/** Parses the path of a value in the store. @throws InvalidArgument */
function toPath(field: string): readonly string[] {
  const path = field.split('.').slice(1)
  if (path.every((part) => part !== '')) return path
  throw new InvalidArgument(`${shortenText(field)} must be store.KEY, or store.KEY.KEY`)
}

/** Parses the name of a state. @throws InvalidArgument */
function toState(word: string): SearchState {
  const found = SEARCH_STATES.find((state) => state === word.toLowerCase())
  if (found) return found
  throw new InvalidArgument(`state must be one of ${SEARCH_STATES.join(', ')}, got '${shortenText(word)}'`)
}

/** Parses a number of runs with its comparison. @throws InvalidArgument */
function toAttempts(value: string): Term {
  const [, sign = '=', digits] = /^(<=|>=|<|>|=)?(\d{1,6})$/.exec(value) ?? []
  if (digits === undefined)
    throw new InvalidArgument(`attempts must be a number, as in attempts:2 or attempts:>1, got '${shortenText(value)}'`)
  return { kind: 'attempts', comparison: sign as Comparison, count: Number(digits) }
}

/** Returns the pattern of a marked value. It ignores upper and lower case; the marks stand for any text. */
function toPattern(marked: string): Pattern {
  return marked.toLowerCase().split(/\uffff+/)
}

/** Returns whether the value has the parts in their order, the first at its start and the last at its end. Takes linear time. */
export function matchesPattern(parts: Pattern, value: string): boolean {
  const text = value.toLowerCase()
  const [first = '', ...others] = parts
  const last = others.pop()
  if (last === undefined) return text === first
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const part of others) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.length - at >= last.length && text.endsWith(last)
}
