/** Batches of memory boards: how many are kept, and one of more jobs than any other test has. */
import { pino } from 'pino'
import { expect } from 'vitest'
import { NotFound } from '../../../../src/core/errors.ts'
import { openBoard, type PostManyResult } from '../../../../src/index.ts'
import { count } from '../../../support/counts.ts'
import { usual as test, variant } from '../../../variant.ts'
import { rejectionOf } from '../../events.ts'

test('the last thousand batches that ended are kept', async () => {
  await using board = await openBoard('memory:')
  const open = await board.batch({ name: 'open' })
  const first = await board.batch({ name: 'first' })
  await first.seal()
  for (let n = 0; n < 1_000; n++) await (await board.batch({ name: `${n}` })).seal()
  expect(await rejectionOf(first.progress())).toBeInstanceOf(NotFound)
  expect(await open.progress()).toMatchObject({ state: 'open' })
  expect(await board.batches({ limit: 10_000 })).toHaveLength(1_001)
})

test('jobs outside of a batch that have the keys of its jobs are counted by the object that posts, and the seal warns of them', async () => {
  const lines: string[] = []
  const log = pino({ level: 'warn', base: null, timestamp: false }, { write: (line: string) => lines.push(line) })
  await using board = await openBoard('memory:', { log })
  const first = await board.post('load', {}, { key: 'a' })
  const batch = await board.batch({ name: 'album', key: 'album 7' })
  const [a, b] = ['a', 'b'].map((key) => ({ flow: 'load', store: {}, key }))
  await batch.postMany([a, b, b].filter((item) => item !== undefined))
  expect(await batch.post('load', {}, { key: 'a' })).toMatchObject({
    uuid: first.uuid,
    created: false,
    batch: undefined,
  })
  expect(batch.existing).toBe(2)
  const { uuid } = batch
  await batch.seal()
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ batch: uuid, existing: 2, total: 1 }])
  const again = await board.batch({ name: 'album', key: 'album 7' })
  await again.seal()
  expect([again.created, again.existing, lines.length]).toEqual([false, 0, 1])
})

variant('a batch of many jobs is cancelled as a whole', { timeout: 120_000 }, async () => {
  const size = count({ test: 20_001, long: 100_001 })
  await using board = await openBoard('memory:')
  const batch = await board.batch({ name: 'large', onFailed: { flow: 'clean' } })
  let posted = 0
  function* items() {
    for (let n = 0; n < size; n++) yield { flow: 'load', store: { n } }
  }
  const onResult = (result: PostManyResult) => {
    if ('job' in result) posted += 1
  }
  await batch.postMany(items(), { onResult })
  expect(posted).toBe(size)
  expect(await batch.seal()).toMatchObject({ total: size, open: size })
  expect(await batch.cancel()).toMatchObject({ total: size, failed: size, open: 0, state: 'cancelled' })
  expect(await batch.wait()).toBe('cancelled')
  expect(await board.countJobs()).toBe(0)
})
