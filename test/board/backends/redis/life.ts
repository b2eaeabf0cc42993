/** The smallest life of a board that touches everything: two processes' boards, resources, keys, participants, the trash. */
import { expect } from 'vitest'
import { openBoard } from '../../../../src/board/index.ts'
import { claimed, namesOn, refresh } from '../../jobs.ts'

/** @param meanwhile happens while one job is claimed and another waits for its resource */
export async function exerciseBoard(
  uri: string,
  meanwhile: () => Promise<void> = async () => undefined,
): Promise<void> {
  await using board = await openBoard(uri, { who: 'board' })
  await using other = await openBoard(uri, { who: 'other' })
  await board.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
  const resources = { exclusive: ['disk'] }
  for (const name of ['a', 'b']) await board.post('flow', { name }, { name, key: name, resources })
  const [claim, ...more] = await other.claimNext({ max: 2 })
  expect([claim.job.name, more]).toEqual(['a', []])
  await meanwhile()
  await claim.trash({ reason: 'why' })
  const next = await claimed(board, 'b')
  expect(next.fence).toBeGreaterThan(claim.fence)
  expect(next.job.details.store).toEqual({ name: 'b' })
  await next.consume()
  await refresh(other)
  expect(await namesOn(other)).toEqual([])
  expect(await other.countJobs()).toBe(0)
  expect(await other.entities('conductor')).toHaveLength(1)
}
