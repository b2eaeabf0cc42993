/** A job is found by its UUID wherever it is, also while it moves. */
import { expect, test, vi } from 'vitest'
import { type JobBoard, openBoard } from '../../src/board/index.ts'
import { locate } from '../../src/conductor/locate.ts'
import { StorageFailure } from '../../src/core/errors.ts'
import type { FlowState } from '../../src/core/states.ts'
import { openPersistence, type Persistence } from '../../src/persistence/index.ts'
import { requestOf } from '../persistence/flows.ts'
import { delegate } from './conducting.ts'

const NEVER = '0199c0de-0000-7000-8000-000000000001'

async function trashJob(board: JobBoard) {
  const job = await board.post('print', {})
  const claim = await board.claim(job)
  await claim.trash({ reason: 'no paper' })
  return job
}

/** Records the flow of a job, in the states that lead to `state`. */
async function record(persistence: Persistence, uuid: string, states: readonly FlowState[], run = 1) {
  await using log = await persistence.acquire(requestOf(uuid, run))
  for (const state of states) await log.write({ state })
}

test('on the board, in the trash, in the logbooks, or nowhere', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  const places = { board, persistence }
  expect(await locate(NEVER, places)).toBeUndefined()
  const job = await board.post('print', {})
  const there = await locate(job.uuid, places)
  expect(there?.place === 'board' && there.job.uuid).toBe(job.uuid)
  await board.cancel(job)
  const located = await locate(job.uuid, places)
  expect(located?.place === 'trash' && [located.trashed.uuid, located.record]).toEqual([job.uuid, undefined])
  await record(persistence, NEVER, ['RUNNING', 'REVERTED'])
  expect(await locate(NEVER, places)).toMatchObject({ place: 'logbook', record: { flow: { state: 'REVERTED' } } })
})

test('a job that was trashed, posted again and done is done', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  const { uuid } = await trashJob(board)
  await record(persistence, uuid, ['RUNNING', 'REVERTED'])
  expect(await locate(uuid, { board, persistence })).toMatchObject({
    place: 'trash',
    record: { flow: { state: 'REVERTED' } },
  })
  await record(persistence, uuid, ['RUNNING', 'SUCCESS'], 2)
  expect(await locate(uuid, { board, persistence })).toMatchObject({ place: 'logbook' })
  expect(await locate(uuid, { board, persistence: undefined })).toMatchObject({ place: 'trash' })
})

test('a job that is restored between the reads of the board and of the trash', async () => {
  await using board = await openBoard('memory:')
  const { uuid } = await trashJob(board)
  const { findTrashed } = board
  vi.spyOn(board, 'findTrashed').mockImplementation(async (reference) => {
    for await (const job of board.trashed()) await board.restore(job)
    return findTrashed.call(board, reference)
  })
  expect(await locate(uuid, { board, persistence: undefined })).toMatchObject({ place: 'board' })
})

test('logbooks are read for a job that is not on the board only; their errors are thrown', async () => {
  await using board = await openBoard('memory:')
  await using storage = await openPersistence('memory:')
  const persistence = delegate(storage, {
    getBook: async () => {
      throw new StorageFailure('the disk is full')
    },
  })
  const job = await board.post('print', {})
  expect(await locate(job.uuid, { board, persistence })).toMatchObject({ place: 'board' })
  await board.cancel(job)
  await expect(locate(job.uuid, { board, persistence })).rejects.toThrow('the disk is full')
})

test('a job that is restored and done between the reads is found in its logbook as it is now', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  const { uuid } = await trashJob(board)
  await record(persistence, uuid, ['RUNNING', 'REVERTED'])
  const { findTrashed } = board
  vi.spyOn(board, 'findTrashed').mockImplementation(async (reference) => {
    for await (const job of board.trashed()) await board.restore(job)
    const [claim] = await board.claimNext()
    await record(persistence, uuid, ['RUNNING', 'SUCCESS'], 2)
    await claim.consume()
    return findTrashed.call(board, reference)
  })
  const located = await locate(uuid, { board, persistence })
  expect(located).toMatchObject({ place: 'logbook', record: { flow: { state: 'SUCCESS' } } })
})
