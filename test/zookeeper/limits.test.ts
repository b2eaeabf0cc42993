import { pino } from 'pino'
import { describe, expect } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { ZooKeeper } from '../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { startProxy } from '../support/proxy.ts'
import { startZooKeeper } from '../support/zookeeper.ts'
import { usual as test, variant } from '../variant.ts'
import { connected, failureOf, portOf, reaches, sessionOf } from './clients.ts'
import { type Asked, reply, startFakeServer } from './fake-server.ts'

const SYNC = 9

describe('requests in flight', () => {
  test('are limited; the others wait, in order, and go on as answers come', async () => {
    const held: Asked[] = []
    await using server = await startFakeServer({
      answer: (asked) => {
        if (asked.opcode !== SYNC) return false
        held.push(asked)
        return true
      },
    })
    await using client = new ZooKeeper({ hosts: server.hosts, maxInFlight: 3 })
    await client.connect()
    const answered: number[] = []
    const all = Array.from({ length: 10 }, async (_, index) => {
      await client.sync(`/${index}`)
      answered.push(index)
    })
    const giveUp = new AbortController()
    const given = failureOf(client.sync('/given-up', { signal: giveUp.signal }))
    await whenever(() => held.length === 3)
    expect(client.counters()).toMatchObject({ inFlight: 3, waiting: 8 })
    giveUp.abort(new Error('enough'))
    expect(await given).toMatchObject({ message: 'enough' })

    for (let done = 0; done < 10; done++) {
      await whenever(() => held.length > 0)
      expect(client.counters().inFlight).toBeLessThanOrEqual(3)
      const asked = held.shift()
      asked?.send(reply(asked.xid))
    }
    await Promise.all(all)
    expect(answered).toEqual([...answered.keys()])
    const { operations, inFlight, waiting } = client.counters()
    expect(operations['sync']).toEqual({ sent: 10, done: 10, refused: 0, unknown: 0 })
    expect([inFlight, waiting]).toEqual([0, 0])
  })

  test('may not be none', () => {
    expect(() => new ZooKeeper({ hosts: 'a', maxInFlight: 0 })).toThrow(InvalidArgument)
  })
})

describe.skipIf(!zookeeperHosts)('counters', () => {
  test('count the outcome of every operation, and why connections ended', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts })
    const path = namespace()
    await Promise.all(Array.from({ length: 20 }, (_, index) => client.create(`${path}-${index}`)))
    await failureOf(client.create(`${path}-0`))
    const before = client.counters()
    expect(before.operations['create']).toEqual({ sent: 21, done: 20, refused: 1, unknown: 0 })
    expect(before.bytesOut).toBeGreaterThan(21 * path.length)
    expect(before.bytesIn).toBeGreaterThan(20 * path.length)

    proxy.mode = 'swallow-replies'
    const asked = proxy.nextRequest()
    const lost = failureOf(client.getChildren('/'))
    await asked
    const again = reaches(client, 'suspended').then(() => reaches(client, 'connected'))
    proxy.mode = 'pass'
    proxy.resetAll()
    await lost
    await again
    await client.sync(path)
    const after = client.counters()
    expect(after.operations['getChildren']).toEqual({ sent: 1, done: 0, refused: 0, unknown: 1 })
    expect(after).toMatchObject({ connections: 2, sessions: 1, inFlight: 0, waiting: 0 })
    expect(Object.values(after.faults)).toEqual([1])
    expect(before.connections).toBe(1)
  })
})

describe.skipIf(!zookeeperHosts)('hosts', () => {
  test('can be replaced: the client moves on, with its session', async () => {
    await using old = await startProxy({ port: portOf(zookeeperHosts) })
    await using young = await startProxy({ port: portOf(zookeeperHosts) })
    const path = namespace()
    await using client = await connected({ hosts: `${old.hosts}${path}` })
    await client.mkdirp('/')
    const id = sessionOf(client)
    expect(() => client.updateHosts(`${young.hosts}/elsewhere`)).toThrow(InvalidArgument)
    client.updateHosts(`${old.hosts},${young.hosts}${path}`)
    expect(client.state).toBe('connected')
    const again = reaches(client, 'connected')
    client.updateHosts(young.hosts)
    await again
    await client.create('/still-here')
    expect([sessionOf(client), young.accepted]).toEqual([id, 1])
    expect(client.counters().faults).toEqual({ moved: 1 })
  })

  variant('that take no more connections from here are reported as such', async () => {
    await using server = await startZooKeeper({ config: { maxClientCnxns: 1 } })
    await using first = await connected({ hosts: server.hosts })
    const second = new ZooKeeper({ hosts: server.hosts })
    const error = await failureOf(second.connect({ timeout: '1s' }))
    expect(String(error)).toContain('maxClientCnxns')
    expect(first.state).toBe('connected')
  })

  variant('that know less than the session are reported as such', async () => {
    const warnings: string[] = []
    const log = pino({ level: 'warn' }, { write: (line: string) => warnings.push(line) })
    await using server = await startZooKeeper()
    await using client = await connected({ hosts: server.hosts, sessionTimeout: '30s', log })
    for (let write = 0; write < 20; write++) await client.create('/n', null, { sequential: true })
    await server.stop()
    await using _ = await startZooKeeper({ port: server.port })
    await whenever(() => warnings.some((line) => line.includes('newest transaction of this session')))
    expect(client.counters().faults['hung-up']).toBeGreaterThan(2)
  })
})

/** Resolves in the turn of the event loop in which it is so. */
async function whenever(so: () => boolean): Promise<void> {
  while (!so()) await new Promise((resolve) => setImmediate(resolve))
}
