import { afterAll, beforeAll } from 'vitest'
import { boardContract } from '../contract/board.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { postgresBoards } from './postgres-boards.ts'

let server: PostgresServer

beforeAll(async () => {
  // What a power cut does is not what is asked here, and each commit would wait for the disk.
  server = await startPostgres({ config: { fsync: 'off' } })
})

afterAll(() => server.stop())

/** So small that every job but a few is outside. On Redis all of the contract is kept in this way. */
boardContract(
  postgresBoards(() => server, { window: 3 }),
  {
    parts: [
      'posting and looking',
      'claiming',
      'what is known of jobs that run elsewhere',
      'what a job waits for',
      'resources',
      'delays and deadlines',
      'cancelling',
    ],
  },
)
