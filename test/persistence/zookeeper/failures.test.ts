/** ZooKeeper that is away, or does not answer; what is too large for it; and removals that were broken off. */
import { randomUUID } from 'node:crypto'
import { describe, expect } from 'vitest'
import { openBoard } from '../../../src/board/index.ts'
import { startConductor } from '../../../src/conductor/index.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { ClaimLost, StorageFailure } from '../../../src/core/errors.ts'
import { input, linear, task } from '../../../src/flow/index.ts'
import { openPersistence, type Persistence } from '../../../src/persistence/index.ts'
import { LogbookLayout } from '../../../src/persistence/zookeeper/layout.ts'
import { finishRemoval, markGoneOp } from '../../../src/persistence/zookeeper/removal.ts'
import { ZooKeeper } from '../../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startProxy } from '../../support/proxy.ts'
import { startZooKeeper } from '../../support/zookeeper.ts'
import { usual as test, variant } from '../../variant.ts'
import { atom, atomNames, requestOf } from '../flows.ts'

describe.skipIf(!zookeeperHosts)('logbooks in a ZooKeeper that fails', () => {
  test('flows under way rest while the server is killed and comes back: each step is done and recorded once', async () => {
    const FLOWS = 30
    await using server = await startZooKeeper()
    const reached = createDeferred()
    const killed = createDeferred()
    const executed = new Map<string, number>()
    const step = (name: string) =>
      task(name, {
        execute: async (_: object, ctx) => {
          const key = `${ctx.job?.uuid} ${name}`
          executed.set(key, (executed.get(key) ?? 0) + 1)
          if (executed.size === FLOWS) reached.resolve()
          if (name === 'two') await killed.promise
        },
      })
    const flow = linear('walk', input<object>(), step('one'), step('two'), step('three'))
    await using board = await openBoard('memory:')
    await using persistence = await openPersistence(`zookeeper://${server.hosts}/logbooks`)
    const jobs = await Promise.all(Array.from({ length: FLOWS }, () => board.post(flow, {})))
    await using _ = await startConductor({ board, persistence, flows: [flow], concurrency: FLOWS })
    await reached.promise
    await server.kill()
    killed.resolve()
    await server.restart()
    expect(await Promise.all(jobs.map((job) => job.wait()))).toEqual(Array(FLOWS).fill('COMPLETE'))
    expect([...executed.values()]).toEqual(Array(FLOWS * 3).fill(1))
    for (const { uuid } of jobs) {
      const [record] = (await persistence.getBook(uuid)).flows
      expect(record).toMatchObject({ state: 'SUCCESS', run: 1 })
      expect(record?.states.map(({ state }) => state)).toEqual(['PENDING', 'RUNNING', 'SUCCESS'])
    }
  })

  test('a write whose answer was lost is done once, and an acquire is repeated', async () => {
    const path = `${namespace('logbooks')}/logbooks`
    await using proxy = await startProxy({ port: Number(zookeeperHosts.split(':')[1]) })
    await using direct = await openPersistence(`zookeeper://${zookeeperHosts}${path}`)
    await using persistence = await openPersistence(`zookeeper://${proxy.hosts}${path}`)
    const first = await persistence.acquire(requestOf('uuid', 1))
    proxy.mode = 'swallow-replies'
    const writing = first.write({ state: 'RUNNING', atoms: [atom('a')] })
    await until(async () => (await namesIn(direct)).length === 1)
    proxy.mode = 'pass'
    proxy.resetAll()
    await writing
    await first.write({ state: 'SUSPENDED', atoms: [atom('b')] })
    expect(await namesIn(direct)).toEqual(['a', 'b'])
    proxy.mode = 'swallow-replies'
    const acquiring = persistence.acquire(requestOf('uuid', 2))
    proxy.mode = 'pass'
    proxy.resetAll()
    const second = await acquiring
    await second.write({ state: 'RUNNING', atoms: [atom('c')] })
    const [flow] = (await direct.getBook('uuid')).flows
    expect(flow?.states.map(({ state, run }) => `${state} ${run}`)).toEqual([
      'PENDING 0',
      'RUNNING 1',
      'SUSPENDED 1',
      'RUNNING 2',
    ])
    expect(await namesIn(direct)).toEqual(['a', 'b', 'c'])
  })

  test('a writer that was cut off is refused when a newer run has come meanwhile', async () => {
    const path = `${namespace('logbooks')}/logbooks`
    await using proxy = await startProxy({ port: Number(zookeeperHosts.split(':')[1]) })
    await using direct = await openPersistence(`zookeeper://${zookeeperHosts}${path}`)
    await using cut = await openPersistence(`zookeeper://${proxy.hosts}${path}`)
    const zombie = await cut.acquire(requestOf('uuid', 1))
    proxy.mode = 'drop-requests'
    const writing = zombie.write({ atoms: [atom('late')] }).catch((error: unknown) => error)
    const nextOwner = await direct.acquire(requestOf('uuid', 2))
    await nextOwner.write({ atoms: [atom('mine')] })
    proxy.mode = 'pass'
    proxy.resetAll()
    expect(await writing).toBeInstanceOf(ClaimLost)
    expect(await namesIn(direct)).toEqual(['mine'])
  })

  test('what is too large is refused for good, and fails nothing beside it', async () => {
    await using persistence = await openPersistence(`zookeeper://${zookeeperHosts}${namespace('logbooks')}/logbooks`)
    const logs = await Promise.all(['a', 'b', 'c'].map((uuid) => persistence.acquire(requestOf(uuid, 1))))
    const result = Buffer.alloc(2 ** 20)
    const outcomes = await Promise.allSettled(
      logs.map((log, index) => log.write({ atoms: [atom('one', index === 1 ? { result } : {})] })),
    )
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(outcomes[1]).toMatchObject({ reason: { code: StorageFailure.code, retryable: false } })
    await logs[0]?.write({ atoms: [atom('two')] })
    expect(atomNames(await persistence.getBook('a'))).toEqual(['one', 'two'])
  })

  test('a former owner of a book that was made anew is refused at every version', async () => {
    await using persistence = await openPersistence(`zookeeper://${zookeeperHosts}${namespace('logbooks')}/logbooks`)
    const former = await persistence.acquire(requestOf('uuid', 1))
    await former.write({ atoms: [atom('old')] })
    await persistence.destroyBook('uuid')
    const anew = await persistence.acquire(requestOf('uuid', 1))
    await anew.write({ atoms: [atom('new')] })
    // Both znodes are at version 1 now.
    await expect(former.write({ atoms: [atom('late')] })).rejects.toThrow(ClaimLost)
    await anew.write({ atoms: [atom('newer')] })
    expect(await namesIn(persistence)).toEqual(['new', 'newer'])
  })

  test('a removal that was broken off is finished by the next process that meets it', async () => {
    const path = `${namespace('logbooks')}/logbooks`
    await using persistence = await openPersistence(`zookeeper://${zookeeperHosts}${path}`)
    await using zookeeper = new ZooKeeper({ hosts: zookeeperHosts })
    await zookeeper.connect()
    const uuid = randomUUID()
    const log = await persistence.acquire(requestOf(uuid, 1))
    for (const meet of [
      () => persistence.acquire(requestOf(uuid, 1, randomUUID())),
      () => persistence.createBook({ uuid, name: 'book' }),
    ]) {
      const { flows, ...book } = await persistence.getBook(uuid)
      const where = new LogbookLayout(path).book(uuid)
      const { stat } = await zookeeper.getData(where)
      await zookeeper.multi(markGoneOp(where, { book, version: stat.version, mark: randomUUID() }))
      await expect(persistence.getBook(uuid)).rejects.toThrow('no logbook')
      await meet()
      expect(atomNames(await persistence.getBook(uuid))).toEqual([])
      await expect(log.write({ atoms: [atom('late')] })).rejects.toThrow(ClaimLost)
      expect(flows.length).toBeLessThanOrEqual(1)
    }
  })

  variant('many who finish a removal, and one who makes the book anew, do not get in each other’s way', async () => {
    const path = `${namespace('logbooks')}/logbooks`
    await using persistence = await openPersistence(`zookeeper://${zookeeperHosts}${path}`)
    await using zookeeper = new ZooKeeper({ hosts: zookeeperHosts })
    await zookeeper.connect()
    const where = new LogbookLayout(path).book('uuid')
    const marks: string[] = []
    for (let round = 0; round < 20; round++) {
      const log = await persistence.acquire(requestOf('uuid', 1, randomUUID()))
      await log.write({ atoms: [atom(`a${round}`), atom('b'), atom('c')] })
      const { flows: _, ...book } = await persistence.getBook('uuid')
      const { stat } = await zookeeper.getData(where)
      const mark = randomUUID()
      await zookeeper.multi(markGoneOp(where, { book, version: stat.version, mark }))
      marks.push(mark)
      const sweeping = marks.map((one) => finishRemoval(zookeeper, where, one))
      const anew = await persistence.acquire(requestOf('uuid', 2, randomUUID()))
      await anew.write({ atoms: [atom('anew')] })
      await Promise.all(sweeping)
      expect(await namesIn(persistence)).toEqual(['anew'])
      await persistence.destroyBook('uuid')
    }
  })
})

async function namesIn(persistence: Persistence): Promise<string[]> {
  return atomNames(await persistence.getBook('uuid'))
}

/** Asks until it is so: nothing tells when another has written. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve))
}
