/** Slow conductors: they are compared flow by flow, so a conductor of long jobs is not called slow. */
import { describe, expect, test } from 'vitest'
import type { EndedJob } from '../../src/board/index.ts'
import { slownessOf } from '../../src/ui/boards/slowness.ts'

/** Returns jobs that are done, each with this duration in milliseconds. */
function done(who: string, flow: string, durations: readonly number[]): EndedJob[] {
  const endedAt = new Date('2026-01-01T12:00:00Z')
  return durations.map((duration, index) => ({
    ...{
      uuid: `${who}-${flow}-${index}`,
      name: flow,
      flow,
      queue: 'default',
      outcome: 'COMPLETE',
      who,
      runs: 1,
      endedAt,
    },
    ...{ version: '1', cancelled: false, earlierRuns: [] },
    ...{ postedAt: endedAt, startedAt: new Date(endedAt.getTime() - duration), reason: undefined },
  }))
}

describe('slowness', () => {
  test('a conductor is compared with others by the same flows only', () => {
    const history = [
      ...done('laptop', 'short', [500, 500, 500]),
      ...done('server', 'short', [100, 100, 100, 9_000]),
      // The healthy server alone runs a long flow: its mean is the largest of all.
      ...done('server', 'long', [60_000, 60_000, 60_000]),
    ]
    expect(slownessOf(history)).toEqual(
      new Map([
        ['laptop', 5],
        ['server', 0.2],
      ]),
    )
  })

  test('flows count by their jobs', () => {
    const history = [
      ...done('a', 'x', [400, 400, 400]),
      ...done('b', 'x', [100, 100, 100]),
      ...done('a', 'y', Array(9).fill(100)),
      ...done('b', 'y', [100, 100, 100]),
    ]
    expect(slownessOf(history).get('a')).toBe((3 * 4 + 9 * 1) / 12)
  })

  test.each([
    ['a flow that no other conductor has done', [...done('a', 'x', [900, 900, 900])]],
    ['too few jobs here', [...done('a', 'x', [900]), ...done('b', 'x', [100, 100, 100])]],
    ['too few jobs elsewhere', [...done('a', 'x', [900, 900, 900]), ...done('b', 'x', [100])]],
    ['jobs of some milliseconds', [...done('a', 'x', [9, 9, 9]), ...done('b', 'x', [1, 1, 1])]],
  ])('%s says nothing', (_, history) => {
    expect(slownessOf(history).get('a')).toBeUndefined()
  })
})

test('thousands of owners are compared with each other in one pass', () => {
  const history = Array.from({ length: 4_000 }, (_, n) => done(`pod-${n}`, 'f', [100 + n, 100 + n, 100 + n])).flat()
  const { user } = process.cpuUsage()
  const slowness = slownessOf(history)
  expect((process.cpuUsage().user - user) / 1_000).toBeLessThan(5_000)
  expect(slowness.size).toBe(4_000)
  // The runs of an owner do not count among the others'.
  expect(slowness.get('pod-0')).toBe(100 / 2_100)
  expect(slowness.get('pod-3999')).toBe(4_099 / 2_099)
})
