/** Tokens of limits that are taken outside of claims, whichever boards take them. */
import { describe, expect, test } from 'vitest'
import type { JobBoard, LimitSettings } from '../../../src/board/index.ts'
import { InvalidArgument, InvalidState, LimitReached, Timeout } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import type { Place } from '../board.ts'

const HOURLY = { rate: { limit: 1, per: '1h' } } as const satisfies LimitSettings
const NO_WAIT = { timeout: 0 } as const

/** Takes as many tokens as are free now. */
async function takeFree(board: JobBoard, key: string): Promise<number> {
  for (let taken = 0; ; taken += 1) {
    const refused = await board.limits.take(key, NO_WAIT).then(
      () => undefined,
      (error: unknown) => error,
    )
    if (refused instanceof Timeout) return taken
    if (refused) throw refused
  }
}

export function limitTokensContract({ open, expire }: Place): void {
  describe('tokens that are taken outside of claims', () => {
    test('are never more than burst and rate permit, whichever boards take them', async () => {
      const boards = [await open(), await open()]
      const [interval, burst] = [60, 3]
      await boards[0]?.limits.set('api', { rate: { limit: 1, per: interval, burst } })
      const begun = performance.now()
      const grants: number[] = []
      const take = async (board: JobBoard) => {
        await board.limits.take('api')
        grants.push(performance.now() - begun)
      }
      await Promise.all(boards.flatMap((board) => Array.from({ length: 6 }, () => take(board))))
      expect(grants).toHaveLength(12)
      // A token is taken before its caller learns of it, so each caller learns of it too late rather than too early.
      for (const [index, at] of grants.entries()) expect(index + 1).toBeLessThanOrEqual(burst + at / interval + 0.1)
    })

    test('are taken in the order of the calls, as many as each costs', async () => {
      const board = await open()
      await board.limits.set('api', { rate: { limit: 1, per: 30, burst: 4 } })
      const order: string[] = []
      const take = async (name: string, cost: number) => {
        await board.limits.take('api', { cost })
        order.push(name)
      }
      // The second costs more than the burst, and is served when no token is missing.
      await Promise.all([take('first', 3), take('large', 6), take('small', 1), take('last', 2)])
      expect(order).toEqual(['first', 'large', 'small', 'last'])
    })

    test('are those of claims', async () => {
      const board = await open()
      await board.limits.set('api', { rate: { limit: 2, per: '1h', burst: 2 } })
      const job = await board.post('work', {}, { limits: ['api'] })
      await (await board.claim(job)).consume()
      expect(await takeFree(board, 'api')).toBe(1)
      expect(await rejectionOf(board.claim(await board.post('work', {}, { limits: ['api'] })))).toBeInstanceOf(
        LimitReached,
      )
      const shown = await board.limits.show('api')
      expect(Number(shown.keys?.[0]?.nextStart) - Date.now()).toBeGreaterThan(1_700_000)
    })

    test('are free where no rate is set, also while all slots are taken', async () => {
      const board = await open()
      await board.limits.take('api')
      await board.limits.set('api', { concurrency: 1 })
      const claim = await board.claim(await board.post('work', {}, { limits: ['api'] }))
      await board.limits.take('api', { cost: 1_000, ...NO_WAIT })
      await claim.consume()
    })

    test('are taken of a key of a pattern by the rate of the pattern', async () => {
      const board = await open()
      await board.limits.set('tenant/*', HOURLY)
      expect([await takeFree(board, 'tenant/1'), await takeFree(board, 'tenant/2')]).toEqual([1, 1])
    })

    test('are taken while the board is paused: jobs that run go on', async () => {
      const board = await open()
      await board.limits.set('api', HOURLY)
      await board.pause()
      expect(await takeFree(board, 'api')).toBe(1)
      await board.resume()
    })
  })

  describe('a call that waits for tokens', () => {
    test('ends with its timeout or its signal, and leaves its tokens to the next call', async () => {
      const board = await open()
      await board.limits.set('api', { rate: { limit: 1, per: '1h', burst: 2 } })
      await board.limits.take('api')
      const stop = new AbortController()
      const large = board.limits.take('api', { cost: 2, signal: stop.signal })
      const late = board.limits.take('api', { cost: 2, timeout: 20 })
      const small = board.limits.take('api')
      expect(await rejectionOf(late)).toBeInstanceOf(Timeout)
      const reason = new Error('not needed any more')
      stop.abort(reason)
      expect(await rejectionOf(large)).toBe(reason)
      await small
      expect(await rejectionOf(board.limits.take('api', { signal: stop.signal }))).toBe(reason)
    })

    test('goes on when another board raises or removes the limit', async () => {
      const [one, other] = [await open(), await open()]
      await one.limits.set('api', HOURLY)
      await one.limits.take('api')
      const waiting = Array.from({ length: 3 }, () => one.limits.take('api'))
      expect(await takeFree(one, 'api')).toBe(0)
      await other.limits.set('api', { rate: { limit: 1, per: '1h', burst: 3 } })
      await Promise.all(waiting.slice(0, 2))
      expect(await takeFree(other, 'api')).toBe(0)
      await other.limits.remove('api')
      await Promise.all(waiting)
    })

    test('is served when the raised rate permits it, and not when the former rate would have', async () => {
      const [one, other] = [await open(), await open()]
      await one.limits.set('api', HOURLY)
      await one.limits.take('api')
      const waiting = [one.limits.take('api'), one.limits.take('api')]
      expect(await takeFree(one, 'api')).toBe(0)
      await other.limits.set('api', { rate: { limit: 1, per: '200ms' } })
      const begun = performance.now()
      await Promise.all(waiting)
      // One token was missing at the change.
      expect(performance.now() - begun).toBeGreaterThan(300)
    })

    test('waits longer when the rate is lowered', async () => {
      const [one, other] = [await open(), await open()]
      await one.limits.set('api', { rate: { limit: 1, per: '20s', burst: 3 } })
      expect(await takeFree(one, 'api')).toBe(3)
      const waiting = one.limits.take('api')
      waiting.catch(() => undefined)
      await other.limits.set('api', HOURLY)
      expect(await takeFree(other, 'api')).toBe(0)
      const next = (await other.limits.show('api')).keys?.[0]?.nextStart
      expect((Number(next) - Date.now()) / 60_000).toBeGreaterThan(50)
      await other.limits.remove('api')
      await waiting
    })

    test('waits while the key is stopped, held or has no slot at all', async () => {
      const [one, other] = [await open(), await open()]
      await one.limits.set('api', { concurrency: 0 })
      const first = one.limits.take('api')
      expect(await takeFree(other, 'api')).toBe(0)
      await other.limits.set('api', { concurrency: 1 })
      await first
      await other.limits.stop('api')
      const second = one.limits.take('api')
      expect(await rejectionOf(one.limits.take('api', { timeout: 20 }))).toBeInstanceOf(Timeout)
      await other.limits.resume('api')
      await second
      const begun = performance.now()
      await other.limits.pushBack('api', { for: '300ms' })
      await other.limits.take('api')
      expect(performance.now() - begun).toBeGreaterThan(250)
    })

    test('continues after the end of the session', async () => {
      const [board, other] = [await open(), await open()]
      await board.limits.set('api', HOURLY)
      await board.limits.take('api')
      const waiting = board.limits.take('api')
      expect(await takeFree(board, 'api')).toBe(0)
      await expire(board)
      await other.limits.remove('api')
      await waiting
    })

    test('ends when the board is closed', async () => {
      const board = await open()
      await board.limits.set('api', { concurrency: 0 })
      const ended = rejectionOf(board.limits.take('api'))
      await board.close()
      expect(await ended).toBeInstanceOf(InvalidState)
      expect(await rejectionOf(board.limits.take('api'))).toBeInstanceOf(InvalidState)
    })
  })

  test('tokens that cannot be taken are refused in one line', async () => {
    const board = await open()
    const refused = await Promise.all([
      rejectionOf(board.limits.take('')),
      rejectionOf(board.limits.take('tenant/*')),
      rejectionOf(board.limits.take('half \ud800')),
      rejectionOf(board.limits.take('api', { cost: 0 })),
      rejectionOf(board.limits.take('api', { cost: 1.5 })),
      rejectionOf(board.limits.take('api', { cost: 1e9 })),
      rejectionOf(board.limits.take('api', { timeout: 'soon' as '1s' })),
      rejectionOf(board.limits.take('api', { costs: 2 } as object)),
    ])
    for (const error of refused) {
      expect(error).toBeInstanceOf(InvalidArgument)
      expect(String(error)).not.toContain('\n')
    }
  })
}
