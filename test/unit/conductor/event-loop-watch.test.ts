import { expect, test } from 'vitest'
import { type Blocked, watchEventLoop } from '../../../src/conductor/event-loop-watch.ts'

function block(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

test('tells of a loop that was blocked for half of the session, and of nothing shorter', async () => {
  const patient: Blocked[] = []
  using _patient = watchEventLoop({ sessionTimeout: 600_000, blocked: (blocked) => patient.push(blocked) })
  const told = new Promise<Blocked>((resolve) => {
    const watch = watchEventLoop({
      sessionTimeout: 400,
      blocked: (blocked) => {
        watch[Symbol.dispose]()
        resolve(blocked)
      },
    })
  })
  block(300)
  const { lag, sessionTimeout } = await told
  expect(sessionTimeout).toBe(400)
  expect(lag).toBeGreaterThanOrEqual(200)
  expect(patient).toEqual([])
})
