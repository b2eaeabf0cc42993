/** The statement that lists books, a page at a time. */
import { FINISHED_STATES } from '../../core/states.ts'
import { encodeText } from '../../core/texts.ts'
import type { SqliteValue } from '../../sqlite/index.ts'
import { type BookQuery, listQueryStates } from '../book-query.ts'

/** Returns the statement for the books after `after`, in the order of their UUIDs. */
export function pageStatement(
  query: BookQuery,
  limit: number,
): { readonly sql: string; readonly values: SqliteValue[] } {
  const { after, name, finished, unchangedSince } = query
  const values: SqliteValue[] = []
  const parameter = (value: SqliteValue) => `?${values.push(value)}`
  const list = (texts: readonly string[]) => `(${texts.map(parameter).join(', ')})`
  const flows = (condition: string) => `EXISTS (SELECT 1 FROM flows f WHERE f.book = b.id${condition})`
  const states = listQueryStates(query)
  const conditions: string[] = []
  if (after !== undefined) conditions.push(`b.uuid > ${parameter(encodeText(after))}`)
  if (name !== undefined) conditions.push(`b.name = ${parameter(encodeText(name))}`)
  if (states) conditions.push(flows(` AND f.state IN ${list(states)}`))
  if (finished !== undefined) {
    const unfinished = flows(` AND f.state NOT IN ${list(FINISHED_STATES)}`)
    conditions.push(`${finished ? '' : 'NOT '}(${flows('')} AND NOT ${unfinished})`)
  }
  if (unchangedSince) {
    const since = parameter(unchangedSince.toISOString())
    conditions.push(`b.updated_at <= ${since} AND NOT ${flows(` AND f.updated_at > ${since}`)}`)
  }
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
  return { sql: `SELECT * FROM books b ${where} ORDER BY b.uuid LIMIT ${parameter(limit)}`, values }
}
