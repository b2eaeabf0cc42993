import { expect, test } from 'vitest'
import { type Blocked, blockedText, watchEventLoop } from '../../../src/conductor/event-loop-watch.ts'
import { TaskWatch } from '../../../src/conductor/task-watch.ts'
import { monotonic } from '../../../src/core/time.ts'

function block(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

test('tells of a loop that was blocked for half of the session, and of nothing shorter', async () => {
  const patient: Blocked[] = []
  const tasks = new TaskWatch({ minimum: 100, now: monotonic })
  const job = { job: 'a uuid', name: 'resize' }
  tasks.begin({ ...job, task: 'waits' }, 'execute')
  using _patient = watchEventLoop({ sessionTimeout: 600_000, tasks, blocked: (blocked) => patient.push(blocked) })
  const told = new Promise<Blocked>((resolve) => {
    const watch = watchEventLoop({
      sessionTimeout: 400,
      tasks,
      blocked: (blocked) => {
        watch[Symbol.dispose]()
        resolve(blocked)
      },
    })
  })
  const end = tasks.begin({ ...job, task: 'computes' }, 'execute')
  block(300)
  end()
  const quick = tasks.begin({ ...job, task: 'quick' }, 'execute')
  quick()
  const blocked = await told
  const { lag, sessionTimeout } = blocked
  expect(blocked.tasks.map(({ task }) => task)).toEqual(['computes', 'waits'])
  expect(blockedText(blocked)).toMatch(
    /^the event loop was blocked for 0\.\d s, by task computes of job a uuid \(resize\); or task waits of job a uuid /,
  )
  expect(sessionTimeout).toBe(400)
  expect(lag).toBeGreaterThanOrEqual(200)
  expect(patient).toEqual([])
})
