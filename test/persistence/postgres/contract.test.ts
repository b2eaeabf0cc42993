import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { openPersistence } from '../../../src/persistence/index.ts'
import { persistenceContract } from '../../contract/persistence.ts'
import { createDatabase, type PostgresDatabase } from '../../support/postgres-database.ts'

let server: PostgresDatabase

beforeAll(async () => {
  server = await createDatabase()
})

afterAll(() => server.stop())

function freshSchema(): string {
  return `test_${randomUUID().replaceAll('-', '')}`
}

persistenceContract({
  name: 'postgres:',
  storage: async () => {
    const uri = `${server.uri}?schema=${freshSchema()}`
    return { open: () => openPersistence(uri), [Symbol.asyncDispose]: async () => undefined }
  },
})
