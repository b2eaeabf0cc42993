import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { NonRetryable } from '../../src/core/errors.ts'
import { type Failure, failureOf, TooManyRequests, toTooManyRequests, WrappedFailure } from '../../src/core/failure.ts'

const countOf = ({ causes = [] }: Failure): number => causes.reduce((sum, cause) => sum + countOf(cause), 1)

test('an error that holds itself, several times over, is cut', () => {
  const error = new AggregateError([], 'knot')
  for (let times = 0; times < 10; times += 1) error.errors.push(error)
  expect(countOf(failureOf(error))).toBeLessThan(50)
})

test('of thousands of errors in one, some are kept', () => {
  const errors = Array.from({ length: 5_000 }, (_, index) => new Error(`number ${index}`))
  const failure = failureOf(new AggregateError(errors, 'all of them'))
  expect(failure.causes?.[0]?.message).toBe('number 0')
  expect(countOf(failure)).toBeLessThan(50)
})

test('what cannot be looked at is a failure, too', () => {
  const hostile = new Proxy(
    {},
    {
      get: () => {
        throw new Error('hands off')
      },
      getPrototypeOf: () => {
        throw new Error('hands off')
      },
    },
  )
  expect(failureOf(hostile)).toMatchObject({ name: 'Error', message: expect.stringContaining('cannot be read') })
})

test('what is wrapped keeps its causes, and that trying again does not help', () => {
  const first = failureOf(new NonRetryable('no such account', { cause: new Error('404') }))
  const again = failureOf(
    new Error('inner flow', { cause: new WrappedFailure([first, failureOf(new Error('other'))]) }),
  )
  expect(again.nonRetryable).toBe(true)
  expect(again.causes?.[0]?.causes?.[0]).toEqual(first)
})

test('failures within failures within failures come to an end', () => {
  let failure = failureOf(new Error('the first'))
  for (let times = 0; times < 100; times += 1)
    failure = failureOf(new WrappedFailure([failure, failureOf(new Error('beside it'))]))
  expect(countOf(failure)).toBeLessThan(50)
})

test('an error of another realm keeps its class, its message, its code and its causes', () => {
  const foreign: unknown = runInNewContext(`
    const cause = Object.assign(new RangeError('too far'), { code: 'E_FAR' })
    Object.assign(new TypeError('no such place', { cause }), { code: 'E_PLACE', retryAfter: 5 })`)
  expect(failureOf(foreign)).toMatchObject({
    ...{ name: 'TypeError', message: 'no such place', code: 'E_PLACE', retryAfter: 5 },
    causes: [{ name: 'RangeError', message: 'too far', code: 'E_FAR' }],
  })
  const several: unknown = runInNewContext(`new AggregateError([new Error('one'), new Error('two')], 'both')`)
  expect(failureOf(several).causes?.map(({ message }) => message)).toEqual(['one', 'two'])
  expect(failureOf(AbortSignal.abort().reason)).toMatchObject({ name: 'AbortError' })
})

test('half of a surrogate pair in an error becomes U+FFFD, also where the text is cut', () => {
  const failure = failureOf(Object.assign(new Error('half \ud83d'), { code: '\ud83d' }))
  expect(failure).toMatchObject({ message: 'half \ufffd', code: '\ufffd' })
  expect(failureOf(new Error(`${'x'.repeat(8_191)}😀`)).message).toBe(`${'x'.repeat(8_191)}\ufffd…`)
})

test('an error of another process that has the code of TooManyRequests, and is none, is a failure as any other', () => {
  const forged = Object.assign(new Error('x'), { code: TooManyRequests.code, name: 'TooManyRequests', retryAfter: 5 })
  expect(toTooManyRequests(new WrappedFailure([failureOf(forged)]))).toBeUndefined()
  const real = toTooManyRequests(new WrappedFailure([failureOf(new TooManyRequests({ key: 'api', retryAfter: '5s' }))]))
  expect(real).toMatchObject({ key: 'api', retryAfter: 5_000 })
  const broken = { ...failureOf(new TooManyRequests()), retryAfter: -1 }
  expect(toTooManyRequests(new WrappedFailure([broken]))).toBeUndefined()
})
