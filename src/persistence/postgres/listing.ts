/** The statement for a page of books. */
import { encodeText } from '../../postgres/index.ts'
import { type BookQuery, FINISHED_STATES, listQueryStates } from '../book-query.ts'

/** Returns the statement. Books are in the order of their UUIDs' bytes, as in the index. */
export function listStatement(schema: string, query: BookQuery): { text: string; values: unknown[] } {
  const values: unknown[] = []
  const parameter = (value: unknown) => `$${values.push(value)}`
  const flows = (condition: string) => `EXISTS (SELECT FROM ${schema}.flows f WHERE f.book = b.id${condition})`
  const conditions: string[] = []
  const { after, name, finished, unchangedSince, limit } = query
  const states = listQueryStates(query)
  if (after !== undefined) conditions.push(`b.uuid > ${parameter(encodeText(after))}`)
  if (name !== undefined) conditions.push(`b.name = ${parameter(encodeText(name))}`)
  if (states) conditions.push(flows(` AND f.state = ANY(${parameter(states)}::text[])`))
  if (finished !== undefined) {
    const unfinished = flows(` AND f.state <> ALL(${parameter(FINISHED_STATES)}::text[])`)
    conditions.push(`${finished ? '' : 'NOT '}(${flows('')} AND NOT ${unfinished})`)
  }
  if (unchangedSince) {
    const since = parameter(unchangedSince.toISOString())
    conditions.push(
      `b.updated_at <= ${since}::timestamptz AND NOT ${flows(` AND f.updated_at > ${since}::timestamptz`)}`,
    )
  }
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
  const columns = 'b.uuid, b.name, b.meta, b.created_at, b.updated_at'
  const text = `SELECT ${columns} FROM ${schema}.books b ${where} ORDER BY b.uuid LIMIT ${parameter(limit ?? null)}`
  return { text, values }
}
