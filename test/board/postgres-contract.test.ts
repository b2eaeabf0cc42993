import { afterAll, beforeAll } from 'vitest'
import { boardContract } from '../contract/board.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { postgresBoards } from './postgres-boards.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})

afterAll(() => server.stop())

boardContract(postgresBoards(() => server))
