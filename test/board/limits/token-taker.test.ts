/** Calls that wait for tokens, on a clock that the test advances, and a backend that counts its requests. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { CompiledRules } from '../../../src/board/limits/compiled-rules.ts'
import { TokenTaker } from '../../../src/board/limits/token-taker.ts'
import { type TokenRequest, type TokensTaken, takeTokensInOrder } from '../../../src/board/model/limits.ts'
import { AbortFlag } from '../../../src/core/async/abort-flag.ts'
import { AccessDenied, LimitsChanged, OutcomeUnknown, Timeout } from '../../../src/core/errors.ts'
import { ManualClock } from '../../../src/testing/index.ts'
import { rejectionOf } from '../events.ts'
import { fakeBackend } from '../override-role.ts'

const closing: AbortController[] = []

afterEach(() => {
  for (const board of closing.splice(0)) board.abort(new Error('the test is over'))
})

/** A taker of one key with a rate, on a backend in this file. */
function takerOf({ perMs, burst = 1 }: { perMs: number; burst?: number }) {
  const clock = new ManualClock({ now: new Date(1_000_000) })
  const requests: TokenRequest[] = []
  /** Errors for the next requests. */
  const errors: Error[] = []
  const users: string[] = []
  const board = new AbortController()
  closing.push(board)
  let arrival: number | undefined
  let revision = 1
  let rules = rulesOf({ perMs, burst })
  const takeTokens = async (request: TokenRequest): Promise<TokensTaken> => {
    requests.push(request)
    await nextTurn()
    const error = errors.shift()
    if (error && !(error instanceof OutcomeUnknown)) throw error
    if (request.revision !== revision) throw new LimitsChanged('changed')
    const { rate, costs } = request
    if (!rate) return { taken: 0 }
    const { arrivalMs, ...answer } = takeTokensInOrder(arrival, { rate, costs }, clock.now())
    arrival = arrivalMs
    if (error) throw error
    return answer
  }
  const backend = fakeBackend({
    clock: { alarms: clock, now: () => clock.now(), read: async () => undefined },
    limits: { takeTokens },
  })
  let known = revision
  const book = {
    open: async () => void users.push('open'),
    close: () => void users.push('close'),
    refresh: async () => {
      known = revision
      taker.rulesChanged()
    },
    get rules() {
      return rules
    },
    get revision() {
      return known
    },
  }
  const taker = new TokenTaker({ backend, book, signal: board.signal })
  const change = (settings: { perMs: number; burst: number }) => {
    rules = rulesOf(settings)
    revision += 1
  }
  return { taker, clock, requests, errors, board, book, change }
}

function rulesOf({ perMs, burst }: { perMs: number; burst: number }): CompiledRules {
  const value = { rate: { limit: 1, perMs, burst }, by: 'test', at: 0 }
  return new CompiledRules([{ id: 'api', revision: 0, value }])
}

describe('calls that wait for tokens', () => {
  test('are served in their order, at the times at which tokens come back', async () => {
    const { taker, clock } = takerOf({ perMs: 100, burst: 2 })
    const begun = clock.now()
    const served: [number, number][] = []
    const calls = Array.from({ length: 6 }, async (_, index) => {
      await taker.take('api', { cost: 1 })
      served.push([index, clock.now() - begun])
    })
    using _skipping = clock.skip('limit')
    await Promise.all(calls)
    expect(served).toEqual([
      [0, 0],
      [1, 0],
      [2, 100],
      [3, 200],
      [4, 300],
      [5, 400],
    ])
  })

  test('a thousand cost one alarm, and one request whenever tokens come back', async () => {
    const { taker, clock, requests } = takerOf({ perMs: 10, burst: 50 })
    const calls = Array.from({ length: 1_000 }, () => taker.take('api', { cost: 1 }))
    expect(await clock.awaited('limit')).toBe(10)
    expect(clock.alarms).toHaveLength(1)
    expect(requests).toHaveLength(1)
    clock.advance(500)
    await clock.awaited('limit')
    expect(requests).toHaveLength(2)
    using _skipping = clock.skip('limit')
    await Promise.all(calls)
    expect(requests.length).toBeLessThan(1_000)
  })

  test('ask again when the limits change, and wait no longer than by the new ones', async () => {
    const { taker, clock, book, change } = takerOf({ perMs: 3_600_000 })
    const calls = [taker.take('api', { cost: 1 }), taker.take('api', { cost: 1 })]
    await clock.awaited('limit')
    change({ perMs: 3_600_000, burst: 2 })
    await book.refresh()
    await Promise.all(calls)
  })

  test('a request that was refused because the limits have changed is repeated with the new ones', async () => {
    const { taker, requests, change } = takerOf({ perMs: 3_600_000 })
    change({ perMs: 1_000, burst: 5 })
    await taker.take('api', { cost: 1 })
    expect(requests.map(({ revision }) => revision)).toEqual([1, 2])
  })

  test('the next call has its turn when the first one is given up', async () => {
    const { taker, clock } = takerOf({ perMs: 1_000, burst: 10 })
    await taker.take('api', { cost: 5 })
    const stop = new AbortController()
    const large = taker.take('api', { cost: 9, signal: stop.signal })
    const small = taker.take('api', { cost: 2 })
    await clock.awaited('limit')
    stop.abort(new Error('given up'))
    await expect(large).rejects.toThrow('given up')
    await small
  })

  test('the next call has its turn when the first one is given up while a request is under way', async () => {
    const { taker, requests } = takerOf({ perMs: 1_000, burst: 10 })
    await taker.take('api', { cost: 5 })
    const stop = new AbortController()
    const large = taker.take('api', { cost: 9, signal: stop.signal })
    const small = taker.take('api', { cost: 2 })
    await Promise.resolve()
    await Promise.resolve()
    stop.abort(new Error('given up'))
    await expect(large).rejects.toThrow('given up')
    await small
    expect(requests.length).toBeGreaterThan(1)
  })

  test('a timeout ends the wait, but not a request that may have taken the tokens', async () => {
    const { taker, clock, requests } = takerOf({ perMs: 1_000 })
    const first = new AbortFlag()
    const taking = taker.take('api', { cost: 1, timeout: first })
    await nextTurn()
    expect(requests).toHaveLength(1)
    first.abort(new Timeout('too late'))
    await taking
    const second = new AbortFlag()
    const waiting = taker.take('api', { cost: 1, timeout: second })
    await clock.awaited('limit')
    second.abort(new Timeout('too late'))
    expect(await rejectionOf(waiting)).toBeInstanceOf(Timeout)
  })
})

describe('a request for tokens that fails', () => {
  test('is repeated when its outcome is unknown: its tokens may be taken twice, and are never given away', async () => {
    const { taker, clock, requests, errors } = takerOf({ perMs: 1_000, burst: 2 })
    errors.push(new OutcomeUnknown('no answer'))
    await taker.take('api', { cost: 1 })
    expect(requests).toHaveLength(2)
    const next = taker.take('api', { cost: 1 })
    expect(await clock.awaited('limit')).toBe(1_000)
    clock.advance(1_000)
    await next
  })

  test('for good ends the calls, and none that come later', async () => {
    const { taker, errors } = takerOf({ perMs: 1_000, burst: 2 })
    errors.push(new AccessDenied('not with these credentials'))
    const calls = [taker.take('api', { cost: 1 }), taker.take('api', { cost: 1 })]
    for (const call of calls) expect(await rejectionOf(call)).toBeInstanceOf(AccessDenied)
    await taker.take('api', { cost: 1 })
  })
})
