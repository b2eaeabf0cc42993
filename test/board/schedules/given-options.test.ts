/** Which options the declaration of a schedule gives: settings of flows override the others. */
import { expect, test } from 'vitest'
import { boardInternals } from '../../../src/board/internal.ts'
import { SCHEDULES } from '../../../src/board/schedules/record.ts'
import { openBoard, schedule } from '../../../src/index.ts'

test('a schedule of an earlier release gets the list, and keeps what was edited at run time', async () => {
  await using board = await openBoard('memory:')
  const nightly = schedule('nightly', { every: '1d' }, 'report', { n: 1 }, { post: { queue: 'mine' } })
  const declare = () => boardInternals(board).declareSchedules({ declare: [nightly], owner: 'tests', prune: false })
  await declare()
  await board.schedules.edit('nightly', { store: { n: 2 } })
  const store = boardInternals(board).records.of(SCHEDULES)
  const found = await store.get('nightly')
  if (!found || 'error' in found) throw new Error('the schedule cannot be read')
  expect(found.value.job.explicit).toEqual(['queue'])
  const { explicit: _, ...job } = found.value.job
  await store.write([{ id: 'nightly', revision: found.revision, value: { ...found.value, job } }])
  await board.flowSettings.set('report', { queue: 'bulk' })
  expect((await board.find(await board.schedules.trigger('nightly'))).queue).toBe('bulk')
  expect(await declare()).toMatchObject({ put: [] })
  const read = await store.get('nightly')
  expect(read).toMatchObject({ value: { job: { explicit: ['queue'], details: { store: { n: 2 } } } } })
})
