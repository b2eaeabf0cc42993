/** Jobs that none of the conductors can run do not block resources for ever. */
import { expect, onTestFinished, test } from 'vitest'
import { memoryTestBackend } from '../../../src/board/internal.ts'
import { input, linear, task } from '../../../src/index.ts'
import { ManualClock } from '../../../src/testing/index.ts'
import { nextEvent } from '../../board/events.ts'
import { startTestConductor } from '../conducting.ts'

function release(version: string) {
  return linear({ name: 'import', version }, input(), task('only', { execute: () => version }))
}

test('a job of an old version lets younger jobs have its resource after unacceptedAfter, and runs once a conductor has it', async () => {
  const clock = new ManualClock()
  const place = memoryTestBackend({ clock })
  const [poster, board, later] = await Promise.all([place.open(), place.open({ unacceptedAfter: '1h' }), place.open()])
  onTestFinished(async () => void (await Promise.all([poster, board, later].map((each) => each.close()))))
  const [first, second] = [release('1.0'), release('2.0')]
  await startTestConductor({ board, persistence: 'memory:', flows: [second], name: 'new' })

  const disk = { resources: { exclusive: ['disk'] } }
  const old = await poster.post(first, {}, disk)
  const young = await poster.post(second, {}, disk)
  await clock.awaited('review')
  clock.advance('59m')
  expect((await board.waitingFor(young))?.text).toBe(
    `resource disk is wanted before it by ${old}; no conductor here knows flow import in version 1.0: after 3600000 ms without one, others no longer wait for it`,
  )
  const unaccepted = nextEvent(board, 'unaccepted')
  clock.advance('1m')
  expect(await unaccepted).toMatchObject({ flow: 'import', version: '1.0', job: { uuid: old.uuid } })
  expect(await young.wait()).toBe('COMPLETE')
  expect(old.state).toBe('UNCLAIMED')

  await startTestConductor({ board: later, persistence: 'memory:', flows: [first], name: 'old' })
  expect(await old.wait()).toBe('COMPLETE')
})
