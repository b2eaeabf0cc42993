import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type EventLoopBlocked, formatBlocked, watchEventLoop } from '../../src/conductor/event-loop-watch.ts'
import { TaskWatch } from '../../src/conductor/runs/task-watch.ts'

/** The monotonic clock of these tests: by the real one a busy machine blocks the event loop, too. */
let time = 0
const now = () => time

beforeEach(() => {
  time = 0
  vi.useFakeTimers()
})
afterEach(() => vi.useRealTimers())

/** Lets time pass in which the event loop turns. */
function turnFor(milliseconds: number): void {
  for (let passed = 0; passed < milliseconds; passed += 1) {
    time += 1
    vi.advanceTimersByTime(1)
  }
}

/** Lets time pass in which the event loop does not turn; then timers that are due fire. */
function block(milliseconds: number): void {
  time += milliseconds
}

test('reports a loop that was blocked for half of the session, and nothing shorter', () => {
  const [reports, patient]: EventLoopBlocked[][] = [[], []]
  const tasks = new TaskWatch({ minimum: 100, now })
  const job = { job: 'a uuid', name: 'resize' }
  tasks.begin({ ...job, task: 'waits' }, 'execute')
  using _patient = watchEventLoop({ sessionTimeout: 600_000, tasks, now, blocked: (blocked) => patient?.push(blocked) })
  using _watch = watchEventLoop({ sessionTimeout: 400, tasks, now, blocked: (blocked) => reports?.push(blocked) })
  turnFor(500)
  const short = tasks.begin({ ...job, task: 'short' }, 'execute')
  block(199)
  short()
  turnFor(500)
  expect(reports).toEqual([])
  const end = tasks.begin({ ...job, task: 'computes' }, 'execute')
  block(300)
  end()
  const quick = tasks.begin({ ...job, task: 'quick' }, 'execute')
  quick()
  turnFor(50)
  expect(reports).toHaveLength(1)
  for (const { lag, sessionTimeout, tasks } of reports ?? []) {
    expect([lag, sessionTimeout]).toEqual([300, 400])
    expect(tasks.map(({ task }) => task)).toEqual(['computes', 'waits'])
  }
  expect(reports?.map(formatBlocked)).toEqual([
    expect.stringMatching(
      /^the event loop was blocked for 0\.3 s, by task computes of job a uuid \(resize\); or task waits of job a uuid /,
    ),
  ])
  turnFor(5_000)
  expect([reports, patient].map((each) => each?.length)).toEqual([1, 0])
})
