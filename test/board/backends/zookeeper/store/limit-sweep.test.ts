/** The znode of a limit's key is deleted when nothing is taken of it any more; claims that take of it at the same moment lose nothing. */
import { describe, expect } from 'vitest'
import { BoardGate } from '../../../../../src/board/backends/zookeeper/store/gate.ts'
import { ZooKeeperLayout } from '../../../../../src/board/backends/zookeeper/store/layout.ts'
import { LimitSweep } from '../../../../../src/board/backends/zookeeper/store/limit-sweep.ts'
import { batchedReader } from '../../../../../src/board/backends/zookeeper/store/reader.ts'
import { RecordNodes } from '../../../../../src/board/backends/zookeeper/store/record-nodes.ts'
import type { JobBoard, PostOptions } from '../../../../../src/board/index.ts'
import { Timeout } from '../../../../../src/core/errors.ts'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import { usual as test, variant } from '../../../../variant.ts'
import { type ZooKeeperPlace, zookeeperPlace } from '../../../boards.ts'
import { rejectionOf } from '../../../events.ts'
import { boardAt } from '../bare-backends.ts'

const MINUTE_MS = 60_000
const NO_WAIT = { timeout: 0 } as const

function fail(error: unknown): never {
  throw error
}

/** Returns what another process sweeps, so much later. @param beforeDeleting is called after the keys were read */
function sweepOf({ observer, path }: ZooKeeperPlace, beforeDeleting?: () => Promise<void>) {
  const layout = new ZooKeeperLayout(path)
  const readMany = batchedReader(observer)
  const ignore = () => undefined
  const sweep = new LimitSweep({
    ...{ layout, readMany },
    zookeeper: {
      getChildren: (folder) => observer.getChildren(folder),
      multi: async (ops) => {
        await beforeDeleting?.()
        return observer.multi(ops)
      },
    },
    gate: new BoardGate({ zookeeper: observer, layout, onGate: ignore, onError: fail }),
    records: new RecordNodes({
      ...{ zookeeper: observer, layout, readMany, now: Date.now },
      onChanges: ignore,
      onError: fail,
    }),
  })
  return ({ laterMs }: { readonly laterMs: number }) => sweep.run(Date.now() + laterMs)
}

async function keysIn({ observer, path }: ZooKeeperPlace): Promise<string[]> {
  const { names } = await observer.getChildren(new ZooKeeperLayout(path).limitsFolder)
  return names.map(decodeURIComponent).sort()
}

async function claim(board: JobBoard, limits: NonNullable<PostOptions['limits']>) {
  return board.claim(await board.post('work', {}, { limits }))
}

describe.skipIf(!zookeeperHosts)('the sweep of limit keys', () => {
  test('deletes keys of which nothing is taken, and keeps those that have slots or lack tokens', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    await board.limits.set('tenant/*', { concurrency: 1 })
    await board.limits.set('quick', { rate: { limit: 1, per: 1 } })
    await board.limits.set('slow', { rate: { limit: 1, per: '1d' } })
    await (await claim(board, ['tenant/9912', 'quick', 'slow'])).consume()
    const held = await claim(board, ['tenant/9913', 'quick'])
    const sweep = sweepOf(place)
    // A key that was just used is likely to be used again.
    expect(await sweep({ laterMs: 0 })).toBe(true)
    expect(await keysIn(place)).toEqual(['quick', 'slow', 'tenant/9912', 'tenant/9913'])
    // The tokens of the slow key are full in a day: an idle board does not look every minute until then.
    expect(await sweep({ laterMs: 2 * MINUTE_MS })).toBe(false)
    expect(await keysIn(place)).toEqual(['slow', 'tenant/9913'])
    await held.consume()
    await sweep({ laterMs: 25 * 60 * MINUTE_MS })
    expect(await keysIn(place)).toEqual([])
    await using again = await claim(board, ['tenant/9912', 'quick', 'slow'])
    expect(again.run).toBe(1)
    expect(await rejectionOf(claim(board, ['tenant/9912']))).toMatchObject({ key: 'tenant/9912' })
  })

  test('deletes keys that no limit concerns, however late their tokens are full', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const long = `tenant/${'ä'.repeat(200)}`
    await board.limits.set('tenant/*', { rate: { limit: 1, per: '36525d' } })
    await board.limits.set('tenant/7', { rate: { limit: 1, per: '36525d' } })
    for (const key of ['tenant/7', 'tenant/8', long]) await board.limits.take(key)
    const sweep = sweepOf(place)
    await sweep({ laterMs: 2 * MINUTE_MS })
    expect(await keysIn(place)).toHaveLength(3)
    await board.limits.remove('tenant/*')
    // This sweeper has not read the gate since.
    expect(await sweep({ laterMs: 2 * MINUTE_MS })).toBe(true)
    expect(await keysIn(place)).toHaveLength(3)
    await sweep({ laterMs: 2 * MINUTE_MS })
    // The name of the long one is a hash: nobody can say whether a limit concerns it.
    expect(await keysIn(place)).toEqual(['tenant/7', expect.stringMatching(/^~/)])
  })

  variant('deletes more keys than one transaction, and none twice', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    await board.limits.set('*', { concurrency: 1 })
    const numbers = Array.from({ length: 1_100 }, (_, number) => number)
    const chunks = Array.from({ length: 44 }, (_, at) => numbers.slice(25 * at, 25 * (at + 1)))
    for (const chunk of chunks) await (await claim(board, chunk.map(String))).consume()
    expect((await keysIn(place)).length).toBeGreaterThanOrEqual(1_100)
    const sweeps = [sweepOf(place), sweepOf(place)]
    await Promise.all(sweeps.map((sweep) => sweep({ laterMs: 2 * MINUTE_MS })))
    await sweepOf(place)({ laterMs: 2 * MINUTE_MS })
    expect(await keysIn(place)).toEqual([])
  })

  describe('beside claims', () => {
    test('a slot and a token that are taken before the deletion keep their keys, and no other', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      await using other = await place.open()
      await board.limits.set('tenant/*', { concurrency: 1 })
      await board.limits.set('api/*', { rate: { limit: 1, per: 50 } })
      for (const keys of [
        ['tenant/1', 'api/1'],
        ['tenant/2', 'api/2'],
      ])
        await (await claim(board, keys)).consume()
      const claims: AsyncDisposable[] = []
      const sweep = sweepOf(place, async () => {
        // Only before the first attempt.
        if (claims.length === 0) claims.push(await claim(other, ['tenant/1']))
        if (claims.length === 1) await other.limits.take('api/2')
      })
      await sweep({ laterMs: 2 * MINUTE_MS })
      expect(await keysIn(place)).toEqual(['api/2', 'tenant/1'])
      expect(await rejectionOf(claim(board, ['tenant/1']))).toMatchObject({ key: 'tenant/1' })
      for (const each of claims) await each[Symbol.asyncDispose]()
    })

    test('a claim that has read the key before the deletion sees the tokens that were taken after it', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      await using other = await place.open()
      await board.limits.set('api', { rate: { limit: 2, per: '1h', burst: 2 } })
      // The znode has version 1, and this board knows that a token is left.
      await board.limits.take('api')
      await sweepOf(place)({ laterMs: 61 * MINUTE_MS })
      expect(await keysIn(place)).toEqual([])
      // Both tokens are one write: the new znode has version 1, too.
      await other.limits.take('api', { cost: 2 })
      expect(await rejectionOf(board.limits.take('api', NO_WAIT))).toBeInstanceOf(Timeout)
      expect(await rejectionOf(claim(board, ['api']))).toMatchObject({ key: 'api' })
    })

    test('a sweep that has read the key before another one deleted it keeps the tokens that were taken after that', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      await board.limits.set('api', { rate: { limit: 2, per: '1h', burst: 2 } })
      await board.limits.take('api')
      const laterMs = 61 * MINUTE_MS
      const sweep = sweepOf(place, async () => {
        await sweepOf(place)({ laterMs })
        expect(await keysIn(place)).toEqual([])
        await board.limits.take('api', { cost: 2 })
      })
      await sweep({ laterMs })
      expect(await keysIn(place)).toEqual(['api'])
      expect(await rejectionOf(board.limits.take('api', NO_WAIT))).toBeInstanceOf(Timeout)
    })

    test('a limit that is set before the deletion keeps the tokens of the key', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      const rate = { limit: 1, per: '1h' } as const
      await board.limits.set('api', { rate })
      await board.limits.take('api')
      await board.limits.remove('api')
      await sweepOf(place, () => board.limits.set('api', { rate }))({ laterMs: 2 * MINUTE_MS })
      expect(await keysIn(place)).toEqual(['api'])
    })
  })

  test('is done by boards among what they scan, while others claim', async () => {
    await using place = await zookeeperPlace()
    const options = { scanPeriod: '2ms', limitsUnusedAfterMs: 0 } as const
    const boards = [await boardAt(place, options), await boardAt(place, options)]
    const [first] = boards
    const slots = 2
    await first?.limits.set('tenant/*', { concurrency: slots, rate: { limit: 1, per: 1 } })
    let most = 0
    const running = new Map<string, number>()
    const work = async (board: JobBoard, jobs: number) => {
      for (let number = 0; number < jobs; number += 1) {
        const key = `tenant/${number % 3}`
        const job = await board.post('work', {}, { limits: [key] })
        const got = await board.claim(job).catch((error: unknown) => {
          if (error instanceof Error && 'key' in error) return undefined
          throw error
        })
        if (!got) continue
        running.set(key, (running.get(key) ?? 0) + 1)
        most = Math.max(most, running.get(key) ?? 0)
        running.set(key, (running.get(key) ?? 0) - 1)
        await got.consume()
      }
    }
    await Promise.all(boards.flatMap((board) => [work(board, 30), work(board, 30), work(board, 30)]))
    expect(most).toBeLessThanOrEqual(slots)
    // An idle board finishes the work.
    while ((await keysIn(place)).length > 0) await (await first?.claim(await first.post('work', {})))?.consume()
    for (const board of boards) await board.close()
  })
})
