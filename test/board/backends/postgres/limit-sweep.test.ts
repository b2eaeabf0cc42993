/** What is left of the keys of limits is deleted with obsolete changes. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LimitReached } from '../../../../src/core/errors.ts'
import { createDatabase, type PostgresDatabase } from '../../../support/postgres-database.ts'
import { rejectionOf } from '../../events.ts'
import { type PostgresPlace, postgresPlaceOn } from './boards.ts'

let server: PostgresDatabase
beforeAll(async () => {
  server = await createDatabase()
})
afterAll(() => server.stop())

/** Deletes what is obsolete, as some participant does every two minutes. */
async function prune({ query }: PostgresPlace): Promise<void> {
  await query("UPDATE @.boards SET horizon_at = horizon_at - interval '5 minutes'")
  await query('SELECT @.prune(id) FROM @.boards')
}

async function keysIn({ query }: PostgresPlace): Promise<unknown[]> {
  return (await query('SELECT key FROM @.limit_keys ORDER BY key')).map(({ key }) => key)
}

test('keys of which nothing is taken, and those that no limit concerns, are deleted; others stay', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using board = await place.open()
  const years = { rate: { limit: 1, per: '36525d' } } as const
  await board.limits.set('slots/*', { concurrency: 1 })
  await board.limits.set('tenant/*', years)
  await board.limits.set('tenant/7', years)
  await board.limits.set('a\\*', years)
  for (const key of ['tenant/7', 'tenant/8', 'a\\b']) await board.limits.take(key)
  await using held = await board.claim(await board.post('work', {}, { limits: ['slots/1'] }))
  await (await board.claim(await board.post('work', {}, { limits: ['slots/2'] }))).consume()
  await prune(place)
  expect(await keysIn(place)).toEqual(['a\\\\b', 'tenant/7', 'tenant/8'])
  await board.limits.remove('tenant/*')
  await prune(place)
  expect(await keysIn(place)).toEqual(['a\\\\b', 'tenant/7'])
  // Slots are rows of their own.
  expect((await board.limits.show('slots/1')).keys).toEqual([{ key: 'slots/1', running: 1 }])
  expect(await board.limits.list()).toContainEqual(
    expect.objectContaining({ key: 'slots/*', keys: [{ key: 'slots/1', running: 1 }] }),
  )
  const waiting = await board.post('work', {}, { limits: ['slots/1'] })
  expect(await rejectionOf(board.claim(waiting))).toBeInstanceOf(LimitReached)
  await held.consume()
  expect(await board.claim(waiting)).toMatchObject({ run: 1 })
})

test('the slot of a claimed job that was deleted by hand is freed', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using board = await place.open()
  await board.limits.set('api', { concurrency: 1 })
  const job = await board.post('work', {}, { limits: ['api'] })
  await board.claim(job)
  await place.removeRaw(job)
  const next = await board.post('work', {}, { limits: ['api'] })
  await prune(place)
  expect((await board.limits.show('api')).keys ?? []).toEqual([])
  expect(await board.claim(next)).toMatchObject({ run: 1 })
})
