/** The saga prints what it says, over two databases of a real Postgres. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { ensureBuilt } from '../support/build.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { outputOf, printedBy } from './printed.ts'

let server: PostgresServer

beforeAll(async () => {
  await ensureBuilt()
  // Nothing here outlives the test.
  server = await startPostgres({ config: { fsync: 'off' } })
})

afterAll(async () => {
  vi.unstubAllEnvs()
  await server?.stop()
})

test('examples/saga prints what it says', async () => {
  vi.stubEnv('SAGA_POSTGRES', server.uri)
  expect(await printedBy('saga')).toBe(await outputOf('saga'))
})
