/** What another program sees of a board's tables and locks, and what it does to them. */
import pg from 'pg'
import type { PostgresPlace } from './boards.ts'

export async function countOf({ query }: PostgresPlace, what: string): Promise<number> {
  const [row] = await query(`SELECT count(*) AS count FROM ${what}`)
  return Number(row?.['count'])
}

/** Resolves when so many calls of this function of the board's schema wait for a lock. Each look is a round trip. */
export async function untilWaiting({ query, schema }: PostgresPlace, name: string, calls: number): Promise<number[]> {
  const text = `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1`
  for (;;) {
    const rows = await query(text, [`%${schema}.${name}(%`])
    if (rows.length >= calls) return rows.map(({ pid }) => Number(pid))
  }
}

/** A connection of another program, with a transaction open. */
export async function openTransaction({ uri, schema }: PostgresPlace): Promise<pg.Client & AsyncDisposable> {
  const [connectionString] = uri.split('?')
  const client = new pg.Client({ connectionString, options: `-c search_path=${schema}` })
  await client.connect()
  await client.query('BEGIN')
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() })
}

export async function countDeadlocks({ query }: PostgresPlace): Promise<number> {
  const [row] = await query('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()')
  return Number(row?.['deadlocks'])
}
