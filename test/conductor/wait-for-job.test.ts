/** Waiting for a job by its uuid, whatever has become of it by then. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startConductor, waitForJob } from '../../src/conductor/index.ts'
import { InvalidArgument, NonRetryable, Timeout } from '../../src/core/errors.ts'
import { input, linear, task } from '../../src/flow/index.ts'
import { openPersistence } from '../../src/persistence/index.ts'
import { rejectionOf } from '../board/events.ts'
import { boards } from './conducting.ts'

const add = task('add', { requires: ['n'], provides: 'sum', execute: async ({ n }: { n: number }) => n + 1 })
const sum = linear('sum', input<{ n: number }>(), add)
const refuse = task('refuse', {
  execute: () => {
    throw new NonRetryable('no paper')
  },
})
const print = linear('print', input<object>(), refuse)

test('a job that is over was over before, one that is not is waited for, and both have their results', async () => {
  const [poster, worker] = await boards('poster', 'worker')
  await using persistence = await openPersistence('memory:')
  const places = { board: poster, persistence }
  const elsewhere = { uuid: randomUUID(), name: 'elsewhere' }
  const job = await poster.post(sum, { n: 1 }, { book: elsewhere })
  const waiting = waitForJob(job.uuid, places)
  await using _conductor = await startConductor({ board: worker, persistence, flows: [sum, print] })
  expect(await waiting).toMatchObject({ status: 'done', results: { add: 2 } })
  expect(await waitForJob(job.uuid, { ...places, book: elsewhere.uuid, timeout: '1s' })).toMatchObject({
    status: 'done',
    results: { add: 2 },
  })
  const refused = await poster.post(print, {})
  for (const when of ['while it is on the board', 'from the trash']) {
    const ended = await waitForJob(refused.uuid, places)
    expect(ended, when).toMatchObject({ status: 'trashed', failures: [{ message: 'no paper' }] })
  }
})

test('a job that keeps no logbook is done when it was seen to be, and an unknown one is unknown', async () => {
  const [poster, worker] = await boards('poster', 'worker')
  await using persistence = await openPersistence('memory:')
  const places = { board: poster, persistence }
  const job = await poster.post('loop', {})
  const waiting = waitForJob(job.uuid, places)
  const [claim] = await worker.claimNext()
  await claim.consume()
  expect(await waiting).toMatchObject({ status: 'done', results: {} })
  expect(await waitForJob(randomUUID(), places)).toMatchObject({ status: 'unknown' })
})

test('the time is limited, a signal ends it, and an option that is not there is refused by name', async () => {
  const [board] = await boards('poster')
  await using persistence = await openPersistence('memory:')
  const { uuid } = await board.post('nobody', {})
  expect(await rejectionOf(waitForJob(uuid, { board, persistence, timeout: 1 }))).toBeInstanceOf(Timeout)
  const signal = AbortSignal.abort(new Error('enough'))
  expect(String(await rejectionOf(waitForJob(uuid, { board, persistence, signal })))).toContain('enough')
  // @ts-expect-error a misspelt option
  expect(await rejectionOf(waitForJob(uuid, { board, persistence, timout: 1 }))).toBeInstanceOf(InvalidArgument)
})
