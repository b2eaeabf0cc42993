/** Decides whether a job matches a search, wherever the job is: on the board, in the trash, or in the history. */
import { isDate } from '../../core/errors.ts'
import { type Comparison, matchesPattern, type Pattern, type Search, type Term } from './parse.ts'

/** The properties of a job that a search reads. */
export interface Searched {
  readonly uuid: string
  readonly name: string
  readonly flow?: string | undefined
  readonly version?: string | undefined
  readonly key?: string | undefined
  readonly owner?: string | undefined
  readonly schedule?: string | undefined
  readonly batch?: string | undefined
  readonly priority?: string | undefined
  readonly queue?: string | undefined
  readonly runs: number
  readonly resources?: readonly string[]
  readonly limits?: readonly string[]
  readonly reasons: readonly string[]
  /** The group of the trash to which the job belongs. */
  readonly group?: string | undefined
  /** Undefined where the store is not known, or must not be shown. */
  readonly store?: unknown
}

/** The minimum length of a word that is compared with the start and the end of uuids. */
const MIN_UUID_PART = 4

export function matches({ terms }: Search, job: Searched): boolean {
  return terms.every((term) => matchesTerm(term, job))
}

function matchesTerm(term: Term, job: Searched): boolean {
  switch (term.kind) {
    case 'word':
      return hasWord(job, term.text)
    case 'attempts':
      return compare(job.runs, term.comparison, term.count)
    case 'store':
      return matchesValue(valueAt(job.store, term.path), term)
    case 'group':
      return job.group === term.text
    case 'field':
      return matchesField(valuesOf(job, term.field), term.pattern)
  }
}

/** Compares the values of a field. An empty pattern matches a job that does not have the field. */
function matchesField(values: readonly string[], pattern: Pattern): boolean {
  if (values.length === 0) return pattern.length === 1 && pattern[0] === ''
  return values.some((value) => matchesPattern(pattern, value))
}

function hasWord(job: Searched, word: string): boolean {
  const { uuid, name, flow, key, owner, reasons } = job
  if (word.length >= MIN_UUID_PART && (uuid.startsWith(word) || uuid.endsWith(word))) return true
  return [name, flow, key, owner, ...reasons].some((text) => text?.toLowerCase().includes(word) === true)
}

function valuesOf(job: Searched, field: Extract<Term, { kind: 'field' }>['field']): readonly string[] {
  if (field === 'resource') return job.resources ?? []
  if (field === 'limit') return job.limits ?? []
  if (field === 'reason') return job.reasons
  const value = job[field]
  return value === undefined ? [] : [value]
}

function compare(runs: number, comparison: Comparison, count: number): boolean {
  switch (comparison) {
    case '<':
      return runs < count
    case '<=':
      return runs <= count
    case '=':
      return runs === count
    case '>=':
      return runs >= count
    case '>':
      return runs > count
  }
}

/** Returns the value at a path of own properties. */
function valueAt(store: unknown, path: readonly string[]): unknown {
  let value = store
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

/** Compares a value of the store as text. A list matches if one of its items does. */
function matchesValue(value: unknown, wanted: { readonly value: string; readonly isAny: boolean }): boolean {
  if (value === undefined) return false
  if (wanted.isAny) return true
  if (Array.isArray(value)) return value.some((item) => matchesValue(item, wanted))
  if (isDate(value)) return value.toISOString() === wanted.value
  if (typeof value === 'object' && value !== null) return false
  return String(value) === wanted.value
}

/** Returns whether the search has a word that may be a part of a uuid. Then the job is searched in the trash and the history, too. */
export function namesUuid({ terms }: Search): boolean {
  return terms.some(
    (term) => term.kind === 'word' && /^-?[0-9a-f]{4,}(-[0-9a-f]*)*$/.test(term.text) && /\d/.test(term.text),
  )
}
