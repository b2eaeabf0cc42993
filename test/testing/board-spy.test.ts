import { expect, onTestFinished, test } from 'vitest'
import { type JobBoard, openBoard } from '../../src/index.ts'
import { spyOn } from '../../src/testing/index.ts'

async function memoryBoard(): Promise<JobBoard> {
  const board = await openBoard('memory:')
  onTestFinished(() => board.close())
  return board
}

test('sees what happens, and waits for what comes', async () => {
  const board = await memoryBoard()
  using spy = spyOn(board)
  const trashed = spy.next('trashed')
  const job = await board.post('one', {})
  const other = await board.post('other', {})
  expect((await spy.next('posted')).uuid).toBe(job.uuid)
  expect((await spy.next('posted', { of: other })).name).toBe('other')
  const claim = await board.claim(job)
  await spy.reached(job, 'CLAIMED')
  await claim.trash()
  expect((await trashed).uuid).toBe(job.uuid)
  // It has been there, and that counts.
  await spy.reached(job, 'CLAIMED')
  await spy.reached(job, 'TRASHED')
  expect(spy.seen.map(({ event, job: { name } }) => `${name} ${event}`)).toEqual([
    'one posted',
    'other posted',
    'one claimed',
    'one trashed',
  ])
})

test('says what happened instead', async () => {
  const board = await memoryBoard()
  using spy = spyOn(board)
  const job = await board.post('one', {})
  await expect(spy.next('claimed', { within: 1 })).rejects.toThrow(
    'not within 1 ms: no job was claimed; seen: one posted',
  )
  await expect(spy.reached(job, 'COMPLETE', { within: 1 })).rejects.toThrow(
    'is UNCLAIMED, not COMPLETE; seen of it: posted',
  )
  const reached = spy.reached(job, 'COMPLETE')
  await (await board.claim(job)).trash({ reason: 'out of paper' })
  await expect(reached).rejects.toThrow('is TRASHED, and never was COMPLETE: out of paper')
})

test('sees what others do, and nothing once it is disposed of', async () => {
  const [board, other] = await Promise.all([openBoard('memory:spied'), openBoard('memory:spied')])
  onTestFinished(async () => {
    await Promise.all([board.close(), other.close()])
  })
  const spy = spyOn(board)
  await other.post('one', {})
  await spy.next('posted')
  spy[Symbol.dispose]()
  using observer = spyOn(board)
  await other.post('two', {})
  await observer.next('posted')
  expect(spy.seen).toHaveLength(1)
})

test('refuses what is no board, and what is no event', async () => {
  expect(() => spyOn('memory:' as unknown as JobBoard)).toThrow('spyOn takes an open board')
  using spy = spyOn(await memoryBoard())
  await expect(spy.next('ended' as 'posted')).rejects.toThrow('unknown event ended of jobs')
})
