import { expect, test } from 'vitest'
import { ClaimLost, StorageFailure } from '../../src/core/errors.ts'
import { retryTransient } from '../../src/persistence/retry.ts'

const away = new StorageFailure('away', { retryable: true })
const never = new AbortController().signal

test('what fails for a passing reason is repeated, and told which try it is', async () => {
  const tries: number[] = []
  const work = async (attempt: number) => {
    tries.push(attempt)
    if (attempt < 4) throw away
    return 'done'
  }
  expect(await retryTransient({ limitMs: 60_000, signal: never }, work)).toBe('done')
  expect(tries).toEqual([1, 2, 3, 4])
})

test.each([
  ['a refusal for good', new StorageFailure('too large')],
  ['a lost claim', new ClaimLost('gone')],
  ['a defect', new TypeError('what')],
])('%s is not', async (_, error) => {
  let tries = 0
  const work = async () => {
    tries += 1
    throw error
  }
  await expect(retryTransient({ limitMs: 60_000, signal: never }, work)).rejects.toBe(error)
  expect(tries).toBe(1)
})

test('without time there is one try', async () => {
  let tries = 0
  const work = async () => {
    tries += 1
    throw away
  }
  await expect(retryTransient({ limitMs: -1, signal: never }, work)).rejects.toBe(away)
  expect(tries).toBe(1)
})

test('a signal ends the waiting with a last try', async () => {
  const stop = new AbortController()
  let tries = 0
  const work = async () => {
    tries += 1
    stop.abort()
    throw away
  }
  await expect(retryTransient({ limitMs: 60_000, signal: stop.signal }, work)).rejects.toBe(away)
  expect(tries).toBe(1)
})
