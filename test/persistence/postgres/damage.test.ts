/** Rows that somebody has written into logbooks by hand: a flow that cannot be read fails no other that is acquired with it. */
import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openPersistence } from '../../../src/persistence/index.ts'
import { createDatabase, type PostgresDatabase } from '../../support/postgres-database.ts'

let server: PostgresDatabase
beforeAll(async () => {
  server = await createDatabase()
})
afterAll(() => server.stop())

test('a damaged flow fails neither what is acquired beside it nor what waits behind it', async () => {
  await using persistence = await openPersistence(`${server.uri}?schema=damage`)
  const request = (uuid: string, run: number) => {
    return { book: { uuid, name: 'b' }, flow: { uuid, name: 'f', version: '1.0' }, run, claim: 'c' }
  }
  const damaged = randomUUID()
  await (await persistence.acquire(request(damaged, 1))).close()
  const client = new pg.Client(server.uri)
  await client.connect()
  await client.query("UPDATE damage.flows SET state = 'x' WHERE uuid = $1", [damaged])
  await client.end()
  const outcomes = [persistence.acquire(request(damaged, 2))]
  // It is under way now, alone; these wait behind it.
  for (let turn = 0; turn < 2; turn += 1) await nextTurn()
  for (const uuid of [randomUUID(), damaged, randomUUID()]) outcomes.push(persistence.acquire(request(uuid, 3)))
  const settled = await Promise.allSettled(outcomes)
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled'])
})
