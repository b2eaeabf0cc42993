import { expect, test } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { Lifecycle } from '../../../src/core/async/lifecycle.ts'
import { InvalidState } from '../../../src/core/errors.ts'

const nothing = async () => undefined

test('starts once, stops once, however often it is asked', async () => {
  const lifecycle = new Lifecycle('thing')
  await lifecycle.start(nothing, nothing)
  expect(lifecycle.state).toBe('running')
  expect(() => lifecycle.start(nothing, nothing)).toThrow(InvalidState)
  let stops = 0
  const stop = async () => {
    stops += 1
  }
  await Promise.all([lifecycle.stop(stop), lifecycle.stop(stop)])
  await lifecycle.stop(stop)
  await lifecycle.stopped
  expect([stops, lifecycle.state]).toEqual([1, 'stopped'])
  expect(() => lifecycle.assertRunning()).toThrow(/thing is stopped/)
})

test('a failed start is undone, and what was started is stopped', async () => {
  const lifecycle = new Lifecycle('thing')
  let undone = 0
  const undo = async () => {
    undone += 1
  }
  const start = lifecycle.start(async () => Promise.reject(new Error('no')), undo)
  await expect(start).rejects.toThrow('no')
  expect([undone, lifecycle.state]).toEqual([1, 'stopped'])
  await lifecycle.stop(async () => Promise.reject(new Error('never called')))
})

test('a stop during the start aborts it, waits for it, and undoes it', async () => {
  const lifecycle = new Lifecycle('thing')
  const began = createDeferred()
  const order: string[] = []
  const started = lifecycle.start(
    async (signal) => {
      began.resolve()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      order.push('start ended')
    },
    async () => void order.push('undone'),
  )
  const failed = expect(started).rejects.toThrow(InvalidState)
  await began.promise
  await lifecycle.stop(async () => void order.push('stopped'))
  await failed
  expect(order).toEqual(['start ended', 'undone'])
})

test('what was never started can be stopped', async () => {
  const lifecycle = new Lifecycle('thing')
  await lifecycle.stop(nothing)
  expect(lifecycle.state).toBe('stopped')
})
