/** Groups of plain jobs, which are claimed and consumed by one statement each: what they wait for, and what they leave to others. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseUri } from '../../../../src/core/uri.ts'
import { PostgresConnection, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { createDatabase, type PostgresDatabase } from '../../../support/postgres-database.ts'
import { type PostgresPlace, postgresPlaceOn } from './boards.ts'
import { countDeadlocks, openTransaction, untilWaiting } from './server-side.ts'

let server: PostgresDatabase

beforeAll(async () => {
  server = await createDatabase()
})

afterAll(() => server.stop())

const CLAIM = `SELECT @.claim(NULL, NULL, $1, $2, $3, '{0}', '{w}', '', '{0}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}') AS answer`
const CONSUME = `SELECT @.settle(NULL, NULL, $1, $2, $3, '{1}', '{consume}', '', '{}', '{}', '{}', '{}', '{}', false, '{}', '', '{}', NULL) AS answer`

interface Setup extends AsyncDisposable {
  readonly place: PostgresPlace
  /** The numbers of three jobs. */
  readonly ids: readonly number[]
  /** Claims or consumes jobs in a session of an owner. */
  call(text: string, session: number, ids: readonly number[]): Promise<Readonly<Record<string, unknown>>>
  openSession(): Promise<number>
}

async function openSetup(): Promise<Setup> {
  const place = await postgresPlaceOn(server.uri)
  const board = await place.open()
  for (const name of ['first', 'second', 'third']) await board.post('flow', {}, { name })
  const [row] = await place.query('SELECT json_agg(id ORDER BY id) AS ids, max(board) AS board FROM @.jobs')
  return {
    place,
    ids: row?.['ids'] as number[],
    call: async (text, session, ids) => {
      // A connection of its own: the call waits for locks.
      const connection = await PostgresConnection.open(parsePostgresLocation(parseUri(server.uri, 'board')))
      try {
        const { rows } = await connection.query(text.replaceAll('@', place.schema), [row?.['board'], session, ids])
        return rows[0]?.['answer'] as Readonly<Record<string, unknown>>
      } finally {
        await connection.close()
      }
    },
    openSession: async () => {
      const [opened] = await place.query("SELECT @.open_session($1, 'owner', 60000) AS id", [row?.['board']])
      return Number(opened?.['id'])
    },
    [Symbol.asyncDispose]: async () => {
      await board.close()
      await place[Symbol.asyncDispose]()
    },
  }
}

test('are claimed in the order of their numbers by owners that choose them in another order', async () => {
  await using setup = await openSetup()
  const { place, ids } = setup
  const [first = 0, second = 0, third = 0] = ids
  const sessions = [await setup.openSession(), await setup.openSession()] as const
  const deadlocks = await countDeadlocks(place)
  await using holder = await openTransaction(place)
  await holder.query('SELECT FROM jobs WHERE id = $1 FOR UPDATE', [second])
  const claims = [
    setup.call(CLAIM, sessions[0], [first, second, third]),
    setup.call(CLAIM, sessions[1], [third, second, first]),
  ]
  // Neither has the third job, for which the other one would wait in turn.
  await untilWaiting(place, 'claim', 2)
  await holder.query('SELECT FROM jobs WHERE id = $1 FOR UPDATE NOWAIT', [third])
  await holder.query('COMMIT')
  const answers = await Promise.all(claims)
  expect(answers.map(({ granted }) => granted ?? []).toSorted((a, b) => String(a).localeCompare(String(b)))).toEqual([
    [],
    [0, 1, 2],
  ])
  const fences = answers.flatMap((answer) => (answer['fences'] ?? []) as number[])
  expect(new Set(fences).size).toBe(3)
  expect(await countDeadlocks(place)).toBe(deadlocks)
})

test.each([
  ['changed', 'UPDATE jobs SET revision = revision + 1 WHERE id = $1'],
  ['changed', 'UPDATE jobs SET session = 1 WHERE id = $1'],
  ['gone', 'DELETE FROM jobs WHERE id = $1'],
  ['waits', "UPDATE jobs SET due_at = 'infinity', due_when_ready = '-infinity' WHERE id = $1"],
])('are refused alone where a transaction changes them meanwhile (%s)', async (why, change) => {
  await using setup = await openSetup()
  const { place, ids } = setup
  const session = await setup.openSession()
  await using holder = await openTransaction(place)
  await holder.query(change, [ids[1]])
  const claim = setup.call(CLAIM, session, ids)
  await untilWaiting(place, 'claim', 1)
  await holder.query('COMMIT')
  expect(await claim).toMatchObject({ granted: [0, 2], refused: [[1, why]] })
  const [row] = await place.query('SELECT json_agg(id ORDER BY id) AS ids FROM @.jobs WHERE session = $1', [session])
  expect(row?.['ids']).toEqual([ids[0], ids[2]])
})

test('are consumed in the order of their numbers, and are lost alone where their claim ends meanwhile', async () => {
  await using setup = await openSetup()
  const { place, ids } = setup
  const [first = 0, second = 0, third = 0] = ids
  const session = await setup.openSession()
  expect(await setup.call(CLAIM, session, ids)).toMatchObject({ granted: [0, 1, 2] })
  const deadlocks = await countDeadlocks(place)
  await using holder = await openTransaction(place)
  await holder.query('UPDATE jobs SET session = NULL, who = NULL WHERE id = $1', [second])
  const consumed = [
    setup.call(CONSUME, session, [first, second, third]),
    setup.call(CONSUME, session, [third, second, first]),
  ]
  await untilWaiting(place, 'settle', 2)
  await holder.query('SELECT FROM jobs WHERE id = $1 FOR UPDATE NOWAIT', [third])
  await holder.query('COMMIT')
  const lost = (await Promise.all(consumed)).map((answer) => (answer['lost'] ?? []) as number[])
  // One of them has consumed two, the other one none.
  expect(lost.map((each) => each.length).toSorted()).toEqual([1, 3])
  expect(lost.find((each) => each.length === 1)).toEqual([1])
  expect(await place.query('SELECT id::integer, session FROM @.jobs')).toEqual([{ id: second, session: null }])
  expect(await countDeadlocks(place)).toBe(deadlocks)
})

test('a post after a plain job that is not committed keeps the job from being consumed, and is found', async () => {
  await using setup = await openSetup()
  const { place, ids } = setup
  const session = await setup.openSession()
  await setup.call(CLAIM, session, ids)
  await using holder = await openTransaction(place)
  // The locks of a post, and its row.
  await holder.query('SELECT FROM jobs WHERE id = $1 FOR KEY SHARE', [ids[1]])
  await holder.query(
    `WITH made AS (INSERT INTO jobs (board, uuid, name, priority, body, due_at, due_when_ready)
      SELECT board, uuid || 'x', 'after', 'NORMAL', body, 'infinity', '-infinity' FROM jobs WHERE id = $1 RETURNING board, id)
    INSERT INTO dependencies (board, job, waits_for, settled) SELECT board, id, $1, false FROM made`,
    [ids[1]],
  )
  const consumed = setup.call(CONSUME, session, ids)
  await untilWaiting(place, 'settle', 1)
  await holder.query('COMMIT')
  expect(await consumed).toEqual({})
  expect(await place.query('SELECT name, due_when_ready FROM @.jobs')).toEqual([
    { name: 'after', due_when_ready: null },
  ])
})
