/** Limits that programs declare: what becomes of them beside those that people set, and beside other programs. */
import { expect, test } from 'vitest'
import { boardInternals } from '../../../src/board/internal.ts'
import { toDeclaredLimits } from '../../../src/board/limits/declare.ts'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { type JobBoard, openBoard } from '../../../src/index.ts'

type Declared = Parameters<typeof toDeclaredLimits>[0]

const declare = (board: JobBoard, given: Declared) => boardInternals(board).declareLimits(toDeclaredLimits(given))
const limitOf = async (board: JobBoard, key: string) => (await board.limits.show(key)).concurrency

test('processes that declare the same at the same time set it once', async () => {
  await using board = await openBoard('memory:declare-together')
  await using other = await openBoard('memory:declare-together')
  const given = { declare: { api: { concurrency: 3 } } }
  const reports = await Promise.all([declare(board, given), declare(other, given), declare(board, given)])
  expect(reports.flatMap(({ put }) => put)).toEqual(['api'])
  expect(reports.flatMap(({ edited, newer, foreign }) => [...edited, ...newer, ...foreign])).toEqual([])
})

test('a process of an older release changes nothing, and removes nothing', async () => {
  await using board = await openBoard('memory:declare-older')
  await declare(board, {
    declare: { api: { concurrency: 5, version: 2 }, added: { concurrency: 1, version: 2 } },
    owner: 'shop',
  })
  const older = await declare(board, { declare: { api: { concurrency: 3, version: 1 } }, owner: 'shop', prune: true })
  expect(older).toMatchObject({ put: [], newer: ['api'], pruned: [] })
  expect([await limitOf(board, 'api'), await limitOf(board, 'added')]).toEqual([5, 1])
})

test('another owner changes nothing, and removes nothing of others', async () => {
  await using board = await openBoard('memory:declare-owners')
  await board.limits.set('by hand', { concurrency: 1 })
  await declare(board, { declare: { api: { concurrency: 5 }, gone: { concurrency: 1 } }, owner: 'shop' })
  const other = await declare(board, { declare: { api: { concurrency: 3 } }, owner: 'bank', prune: true })
  expect(other).toMatchObject({ put: [], foreign: ['api'], pruned: [] })
  const own = await declare(board, { declare: { api: { concurrency: 5 } }, owner: 'shop', prune: true })
  expect(own).toMatchObject({ put: [], pruned: ['gone'] })
  expect((await board.limits.list()).map(({ key }) => key)).toEqual(['api', 'by hand'])
})

test('what a person sets between two declarations stays until the declaration changes', async () => {
  await using board = await openBoard('memory:declare-edited')
  const given = (concurrency: number) => ({ declare: { api: { concurrency } } })
  await declare(board, given(3))
  await board.limits.set('api', { concurrency: 9 })
  expect(await declare(board, given(3))).toMatchObject({ put: [], edited: ['api'] })
  expect(await limitOf(board, 'api')).toBe(9)
  expect(await declare(board, given(4))).toMatchObject({ put: ['api'], edited: [] })
  expect(await limitOf(board, 'api')).toBe(4)
})

test.each([
  ['no map', { declare: [] }, 'limits: declare must be an object'],
  ['prune without an owner', { declare: {}, prune: true }, 'prune needs an owner'],
  [
    'a version below 0',
    { declare: { api: { concurrency: 1, version: -1 } } },
    'limit api: version must be a whole number from 0, got -1',
  ],
  [
    'an invalid limit',
    { declare: { api: { concurrency: -1 } } },
    'limit api: concurrency must be a whole number from 0',
  ],
])('%s is refused', (_, given, message) => {
  expect(() => toDeclaredLimits(given as never)).toThrow(InvalidArgument)
  expect(() => toDeclaredLimits(given as never)).toThrow(message)
})
