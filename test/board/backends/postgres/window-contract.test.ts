import { afterAll, beforeAll } from 'vitest'
import { boardContract, WINDOW_PARTS } from '../../../contract/board.ts'
import type { PostgresServer } from '../../../support/postgres.ts'
import { startPooledPostgres } from '../../../support/session-pooler.ts'
import { postgresBoards } from './boards.ts'

let server: PostgresServer

beforeAll(async () => {
  // What a power cut does is not what is asked here, and each commit would wait for the disk.
  server = await startPooledPostgres({ config: { fsync: 'off' } })
})

afterAll(() => server.stop())

/** So small that every job but a few is outside. */
boardContract(
  postgresBoards(() => server, { window: 3 }),
  { variant: WINDOW_PARTS, opened: ['as used'] },
)
