/** The saga prints what it says, over two databases of a real Postgres. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { ensureBuilt } from '../support/build.ts'
import { createDatabase, type PostgresDatabase } from '../support/postgres-database.ts'
import { outputOf, printedBy } from './printed.ts'

let server: PostgresDatabase

beforeAll(async () => {
  await ensureBuilt()
  // Nothing here outlives the test.
  server = await createDatabase()
})

afterAll(async () => {
  vi.unstubAllEnvs()
  await server?.stop()
})

test('examples/saga prints what it says', async () => {
  vi.stubEnv('SAGA_POSTGRES', server.uri)
  expect(await printedBy('saga')).toBe(await outputOf('saga'))
})
