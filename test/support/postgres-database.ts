/** A database in the Postgres that all test files of the run share: it takes a tenth of the time that a server of one's own takes. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** The Postgres of the run; undefined where JOBBOARD_SKIP says to do without. */
    postgres: { readonly uri: string; readonly port: number } | undefined
  }
}

export interface PostgresDatabase extends AsyncDisposable {
  /** Leads through the pooler of `session-pooler.ts`, as a superuser who needs no password. */
  readonly uri: string
  /** The port of the server itself. */
  readonly port: number
  /** Ends all connections, and drops the database. */
  stop(): Promise<void>
}

/**
 * Creates a database. For tests that neither stop the server nor change its settings: others use `startPostgres`.
 *
 * @throws Error where there is no Postgres
 */
export async function createDatabase(): Promise<PostgresDatabase> {
  const server = inject('postgres')
  if (!server) throw new Error('there is no Postgres, and JOBBOARD_SKIP says to do without')
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await runAlone(server.uri, `CREATE DATABASE ${name}`)
  const stop = () => runAlone(server.uri, `DROP DATABASE ${name} WITH (FORCE)`)
  return { uri: server.uri.replace(/\/postgres$/, `/${name}`), port: server.port, stop, [Symbol.asyncDispose]: stop }
}

async function runAlone(uri: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: uri })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
