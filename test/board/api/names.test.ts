/** Names that no board stores as they are: half of a surrogate pair becomes U+FFFD in UTF-8, so two such names would become one. */
import { expect, test } from 'vitest'
import { openBoard, schedule } from '../../../src/board/index.ts'
import { JobboardError } from '../../../src/core/errors.ts'
import { input, linear, task } from '../../../src/flow/index.ts'
import { rejectionOf } from '../events.ts'
import { all } from '../jobs.ts'

const memoryBoard = () => openBoard('memory:', { who: 'tester' })
const half = 'Invoice 😀'.slice(0, 9)

test.each<[string, () => Promise<unknown>]>([
  ['the owner of a board', async () => openBoard('memory:', { who: half })],
  ['a URI', async () => openBoard(`memory:${half}`)],
  ['a task', async () => task(half, { execute: () => 1 })],
  ['a flow', async () => linear(half, input<object>(), task('one', { execute: () => 1 }))],
  ['a batch', async () => (await memoryBoard()).batch({ name: half })],
  ['the kind of an entity', async () => (await memoryBoard()).registerEntity({ kind: half, name: 'a', metadata: {} })],
  ['an entity', async () => (await memoryBoard()).registerEntity({ kind: 'a', name: half, metadata: {} })],
  ['a schedule', async () => (await memoryBoard()).schedules.put(schedule(half, { every: '1h' }, 'flow', {}))],
  ['a limit', async () => (await memoryBoard()).limits.set(half, { concurrency: 1 })],
])('half of a surrogate pair is refused in the name of %s', async (_, use) => {
  const error = await rejectionOf(use())
  expect(error).toBeInstanceOf(JobboardError)
  expect(String(error)).toMatch(/half of a surrogate pair|whole characters|must be up to 200 letters/)
})

test('half of a surrogate pair in a reason is repaired', async () => {
  const board = await memoryBoard()
  const job = await board.post('flow', {})
  await (await board.claim(job)).trash({ reason: `${half}: not found` })
  const reasons = (await all(board.trashed())).map(({ reason }) => reason)
  expect(reasons).toEqual(['Invoice \ufffd: not found'])
})
