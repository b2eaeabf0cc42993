/** What the record of a retry keeps of many attempts, and that retries decide by it as by the whole history. */
import { describe, expect } from 'vitest'
import { encodePlain } from '../../../src/core/codec.ts'
import { failureOf } from '../../../src/core/failure.ts'
import { addAttempt, addFailure, forEach, History, type KeptAttempt } from '../../../src/flow/index.ts'
import { checkSecrets } from '../../../src/persistence/checked-records.ts'
import { usual as test, variant } from '../../variant.ts'

/** Returns the history after an attempt with each value; all fail with this error. */
function historyOf(values: readonly unknown[], error: Error = new TypeError('broken')): readonly KeptAttempt[] {
  let history: readonly KeptAttempt[] = []
  for (const value of values) {
    const begun = addAttempt(history, value)
    history = addFailure(begun, { atom: 'task', failure: failureOf(error) }) ?? begun
  }
  return history
}

const range = (length: number) => Array.from({ length }, (_, n) => n + 1)
const sizeOf = (history: unknown) => encodePlain(history, 'msgpack').length

describe('the history of very many attempts', () => {
  variant.each<[string, (n: number) => unknown]>([
    ['that count', (n) => n],
    ['that repeat', () => 'same'],
    ['that are nothing', () => undefined],
    ['that are objects', (n) => ({ host: `${n}.example` })],
  ])('takes no more room than that of some, with values %s', (_what, toValue) => {
    const values = range(3_000).map((n) => toValue(n))
    const long = historyOf(values)
    expect(sizeOf(long)).toBeLessThan(90_000)
    const history = new History(long)
    expect(history.length).toBe(3_000)
    expect(history.provided.slice(-1_000)).toEqual(values.slice(-1_000))
    expect(history.attempts[1]?.failures).toHaveLength(1)
    expect(history.attempts.at(-1)?.failures).toHaveLength(1)
  })

  test('has all values up to a thousand different ones, and knows which errors occurred in between', () => {
    const values = range(900).map((n) => ({ n }))
    const before = historyOf(values.slice(0, 100), Object.assign(new RangeError('far'), { code: 'FAR' }))
    let long = before
    for (const value of values.slice(100)) long = addAttempt(long, value)
    const history = new History(long)
    expect(history.provided).toEqual(values)
    expect(['RangeError', 'FAR', 'TypeError', '__proto__'].map((name) => history.causedBy(name))).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect(history.causedBy('FAR', { attempt: -1 })).toBe(false)
  })

  test('shortens failures, and keeps what decides about them', () => {
    const cause = new Error('deep', {
      cause: new Error('deeper', { cause: new Error('deepest', { cause: new Error('lost') }) }),
    })
    const [attempt] = historyOf([1], new Error('y'.repeat(10_000), { cause }))
    const failure = attempt?.failures[0]?.failure
    expect(failure).toMatchObject({ name: 'Error', message: `${'y'.repeat(500)}…`, causes: [{ message: 'deep' }] })
    expect(JSON.stringify(attempt)).not.toMatch(/stack|lost/)
  })

  variant.each([30, 1_400])('lets forEach try each of %d values once', (count) => {
    const values = range(count).map((n) => `host ${n} ${'x'.repeat(30)}`)
    const retry = forEach(values)
    let history: readonly KeptAttempt[] = []
    const tried: unknown[] = []
    for (const _ of values) {
      const value = retry.execute({}, { history: new History(history) } as never)
      tried.push(value)
      history = addAttempt(history, value)
    }
    expect(tried).toEqual(values)
    expect(retry.onFailure({}, { history: new History(history) } as never)).toBe('REVERT')
  })

  test('is read from a record of an earlier release, and bounded at its next attempt', () => {
    const old = range(500).map((value) => ({
      value,
      failures: [{ atom: 'task', failure: failureOf(new Error('old')) }],
    }))
    const { history = [] } = checkSecrets({ history: old }, 'the record')
    expect(new History(history).length).toBe(500)
    const next = addAttempt(history, 501)
    expect(next).toHaveLength(20)
    expect(new History(next).provided).toEqual(range(501))
    expect(checkSecrets({ history: next }, 'the record').history).toEqual(next)
  })

  test.each([
    { values: [{ count: 1e12 }], errors: [] },
    { values: [{ count: -1 }], errors: [] },
    { values: 7, errors: [] },
    { values: [], errors: [['a']] },
  ])('is refused where a record says what cannot be: %j', (omitted) => {
    const check = () => checkSecrets({ history: [{ value: 1, failures: [], omitted }] }, 'the record')
    expect(check).toThrow(/the record is damaged/)
  })
})
