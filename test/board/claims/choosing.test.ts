/** Which jobs are chosen: in claim order while no other owner is faster. */
import { expect, test } from 'vitest'
import { openBoard } from '../../../src/board/index.ts'
import { Unclaimable } from '../../../src/core/errors.ts'
import { rejectionOf } from '../events.ts'

test('a job that is trashed instead of claimed is no lost race: the next jobs are claimed in order', async () => {
  await using board = await openBoard('memory:')
  const exhausted = await board.post('flow', {}, { maxAttempts: 1 })
  await (await board.claim(exhausted)).abandon({ failed: true })
  const names = Array.from({ length: 20 }, (_, index) => `job ${index}`)
  for (const name of names) await board.post('flow', {}, { name })
  expect(await rejectionOf(board.claim(exhausted))).toBeInstanceOf(Unclaimable)
  const claimed: string[] = []
  for (const _ of names) claimed.push((await board.claimNext())[0].job.name)
  expect(claimed).toEqual(names)
})
