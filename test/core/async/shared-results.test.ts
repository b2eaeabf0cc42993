import { expect, test } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { SharedResults } from '../../../src/core/async/shared-results.ts'

test('resolves with a result for each request, in the order of the requests', async () => {
  const results = new SharedResults<string>(4)
  const later = createDeferred<string>()
  results.resolve(3, later.promise)
  results.settle(1, { error: new Error('refused') })
  results.resolve(2, Promise.reject(new Error('failed')))
  results.resolve(0, 'first')
  later.resolve('last')
  expect(await results.settled).toEqual([
    { value: 'first' },
    { error: new Error('refused') },
    { error: new Error('failed') },
    { value: 'last' },
  ])
})

test('the first result of a request counts, as that of a promise', async () => {
  const results = new SharedResults<string>(2)
  results.settle(0, { value: 'first' })
  results.settle(0, { error: new Error('its group failed afterwards') })
  results.settle(1, { value: 'second' })
  expect(await results.settled).toEqual([{ value: 'first' }, { value: 'second' }])
})

test('resolves at once without requests', async () => {
  expect(await new SharedResults<string>(0).settled).toEqual([])
})
