import { expect, test } from 'vitest'
import { goalLine } from './goals.ts'

test.each([
  [2.5, { atLeast: 2 }, 'goal met: speed 2.5 (goal: at least 2)'],
  [2, { atLeast: 2 }, 'goal met: speed 2 (goal: at least 2)'],
  [1.999, { atLeast: 2 }, 'goal missed: speed 1.999 (goal: at least 2)'],
  [0.1234, { atMost: 0.2 }, 'goal met: speed 0.123 (goal: at most 0.2)'],
  [1_868.4, { atMost: 1_500 }, 'goal missed: speed 1868 (goal: at most 1500)'],
  [undefined, { atMost: 1 }, 'goal missed: speed not measured (goal: at most 1)'],
  [Number.NaN, { atLeast: 1 }, 'goal missed: speed not measured (goal: at least 1)'],
  [Number.POSITIVE_INFINITY, { atLeast: 1 }, 'goal missed: speed not measured (goal: at least 1)'],
])('%s with the goal %o is reported as: %s', (value, goal, line) => {
  expect(goalLine({ what: 'speed', value, goal })).toBe(line)
})
