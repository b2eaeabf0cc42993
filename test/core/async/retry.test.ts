import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { AbortFlag } from '../../../src/core/async/abort-flag.ts'
import { type RetryOptions, retry, retryUntilAborted, settleWithRetries } from '../../../src/core/async/retry.ts'
import { AccessDenied, ClaimLost, NotConnected, OutcomeUnknown } from '../../../src/core/errors.ts'

const AWAY = new NotConnected('away')
const UNKNOWN = new OutcomeUnknown('the outcome is unknown')
const LOST = new ClaimLost('lost')
const STOPPED = new Error('stopped')
const FAST: RetryOptions = { firstPauseMs: 1, maxPauseMs: 2 }
const NEVER: RetryOptions = { firstPauseMs: 1e9, maxPauseMs: 1e9, jitter: 'none' }

describe('retry', () => {
  test('repeats failed work, and passes the number of the try', async () => {
    const tries: number[] = []
    const retried: [unknown, number][] = []
    const work = async (attempt: number) => {
      tries.push(attempt)
      if (attempt < 4) throw AWAY
      return 'done'
    }
    expect(await retry(work, { ...FAST, onRetry: (...given) => retried.push(given) })).toBe('done')
    expect(tries).toEqual([1, 2, 3, 4])
    expect(retried).toEqual([1, 2, 3].map((attempt) => [AWAY, attempt]))
  })

  test('rejects at once with an error that is not worth a retry', async () => {
    const asked: [unknown, number][] = []
    const isRetryable = async (error: unknown, attempt: number) => {
      asked.push([error, attempt])
      return error !== LOST
    }
    const work = async (attempt: number) => {
      throw attempt === 1 ? AWAY : LOST
    }
    await expect(retry(work, { ...FAST, isRetryable })).rejects.toBe(LOST)
    expect(asked).toEqual([
      [AWAY, 1],
      [LOST, 2],
    ])
  })

  test('makes one try where there is no time for a pause', async () => {
    const work = vi.fn(async () => {
      throw AWAY
    })
    await expect(retry(work, { ...FAST, limitMs: -1 })).rejects.toBe(AWAY)
    await expect(retry(work, { ...NEVER, limitMs: 1_000 })).rejects.toBe(AWAY)
    expect(work).toHaveBeenCalledTimes(2)
  })

  test('a signal makes the present try the last one', async () => {
    const stop = new AbortController()
    const onRetry = vi.fn()
    const work = vi.fn(async () => {
      stop.abort(STOPPED)
      throw AWAY
    })
    await expect(retry(work, { ...NEVER, signal: stop.signal, onRetry })).rejects.toBe(AWAY)
    expect(work).toHaveBeenCalledTimes(1)
    expect(onRetry).not.toHaveBeenCalled()
  })

  const signals = [
    ['an AbortSignal', () => new AbortController()],
    ['an AbortFlag', () => new AbortFlag()],
  ] as const
  test.each(signals)('%s ends a pause at once', async (_, create) => {
    const stop = create()
    const signal = stop instanceof AbortFlag ? stop : stop.signal
    const work = vi.fn(async () => {
      throw AWAY
    })
    const onRetry = () => queueMicrotask(() => stop.abort(STOPPED))
    await expect(retry(work, { ...NEVER, signal, onRetry })).rejects.toBe(STOPPED)
    await expect(retry(work, { ...NEVER, signal, onRetry })).rejects.toBe(STOPPED)
    expect(work).toHaveBeenCalledTimes(1)
  })

  test('with triesWhenAborted, a last try follows the pause that the signal ends', async () => {
    const stop = new AbortController()
    const options = { ...NEVER, signal: stop.signal, triesWhenAborted: true }
    const onRetry = () => queueMicrotask(() => stop.abort(STOPPED))
    const work = async (attempt: number) => {
      if (attempt === 1) throw AWAY
      return 'done'
    }
    expect(await retry(work, { ...options, onRetry })).toBe('done')
    await expect(retry(work, options)).rejects.toBe(AWAY)
  })

  test('after earlier failures, a pause comes before the first try', async () => {
    const stop = new AbortController()
    const work = vi.fn(async () => 'done')
    const pausing = retry(work, { ...NEVER, failuresBefore: 1, signal: stop.signal })
    stop.abort(STOPPED)
    await expect(pausing).rejects.toBe(STOPPED)
    expect(work).not.toHaveBeenCalled()
  })

  test('makes a try for each failure that may be retried, and one more', async () => {
    const counts = fc.record({ failures: fc.nat(6), allowed: fc.nat(6), failuresBefore: fc.nat(3) })
    await fc.assert(
      fc.asyncProperty(counts, async ({ failures, allowed, failuresBefore }) => {
        const work = vi.fn(async (attempt: number) => {
          if (attempt <= failures) throw AWAY
          return 'done'
        })
        const isRetryable = (_: unknown, attempt: number) => attempt <= allowed
        const options = { firstPauseMs: 0.01, maxPauseMs: 0.02, failuresBefore, isRetryable }
        const end = await retry(work, options).catch((error: unknown) => error)
        expect(end).toBe(failures <= allowed ? 'done' : AWAY)
        expect(work).toHaveBeenCalledTimes(Math.min(failures, allowed) + 1)
      }),
    )
  })
})

test('retryUntilAborted resolves once the signal has fired, and rejects with other errors', async () => {
  const stop = new AbortController()
  const options = { ...NEVER, signal: stop.signal, isRetryable: (error: unknown) => error === AWAY }
  await expect(retryUntilAborted(() => Promise.reject(LOST), options)).rejects.toBe(LOST)
  const onRetry = () => queueMicrotask(() => stop.abort(STOPPED))
  expect(await retryUntilAborted(() => Promise.reject(AWAY), { ...options, onRetry })).toBeUndefined()
  const work = vi.fn(async () => 'done')
  expect(await retryUntilAborted(work, options)).toBeUndefined()
  expect(work).not.toHaveBeenCalled()
})

/** Returns the result of a settlement whose tries end so, one after the other. The claim is lost with the last one. */
async function settled(tries: readonly (Error | 'consumed')[]): Promise<unknown> {
  const claim = new AbortController()
  let attempt = 0
  const settle = async () => {
    const end = tries[attempt++]
    if (attempt >= tries.length) claim.abort(LOST)
    if (end instanceof Error) throw end
    return end
  }
  const end = await settleWithRetries({ lost: claim.signal }, settle, (error) => {
    throw error
  })
  expect(attempt).toBe(tries.length)
  return end
}

test.each([
  [['consumed'], 'consumed'],
  [[AWAY, AWAY, 'consumed'], 'consumed'],
  [[UNKNOWN, 'consumed'], 'consumed'],
  [[AWAY, AWAY], 'lost'],
  [[AWAY, LOST], 'lost'],
  [[UNKNOWN, AWAY], 'unknown'],
  [[UNKNOWN, LOST], 'unknown'],
] as const)('%j ends as %s', async (tries, end) => {
  expect(await settled(tries)).toBe(end)
})

test('the caller decides about a refusal that is not transient', async () => {
  const denied = new AccessDenied('no')
  await expect(settled([AWAY, denied])).rejects.toBe(denied)
  const refusals: number[] = []
  const refused = (_: unknown, attempt: number) => {
    refusals.push(attempt)
    return attempt === 2 ? 'given up' : undefined
  }
  const claim = { lost: new AbortController().signal }
  expect(await settleWithRetries(claim, () => Promise.reject(denied), refused)).toBe('given up')
  expect(refusals).toEqual([1, 2])
})
