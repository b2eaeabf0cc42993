import { afterAll, beforeAll, describe, expect } from 'vitest'
import { InvalidState } from '../../../src/core/errors.ts'
import { NoNode, NoWatcher, type OneShotHandler, op, type ZooKeeper } from '../../../src/zookeeper/index.ts'
import { expireSession } from '../../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startProxy, type TcpProxy } from '../../support/proxy.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../support/zookeeper.ts'
import { usual as test, variant } from '../../variant.ts'
import { connected, failureOf, portOf, reaches, sessionOf } from '../clients.ts'

/** Handlers that write down what they are told. */
function recorder() {
  const told: string[] = []
  const named =
    (name: string): OneShotHandler =>
    ({ type, path }) =>
      void told.push(`${name}: ${type} ${path}`)
  return { told, named }
}

/** Breaks the connection, lets others work meanwhile, and comes back. */
async function whileAway(client: ZooKeeper, proxy: TcpProxy, work: () => Promise<unknown>): Promise<void> {
  const suspended = reaches(client, 'suspended')
  proxy.mode = 'refuse'
  proxy.resetAll()
  await suspended
  await work()
  const again = reaches(client, 'connected')
  proxy.mode = 'pass'
  await again
}

describe.skipIf(!zookeeperHosts)('a one-shot watch', () => {
  test('reports the next change of what was read, once', async () => {
    await using client = await connected()
    const path = namespace()
    const { told, named } = recorder()
    await client.exists(path, { watch: named('exists') })
    await client.create(path)
    expect(told.splice(0)).toEqual([`exists: created ${path}`])

    await client.exists(path, { watch: named('exists') })
    await client.getData(path, { watch: named('data') })
    await client.getChildren(path, { watch: named('children') })
    await client.create(`${path}/a`)
    expect(told.splice(0)).toEqual([`children: childrenChanged ${path}`])
    await client.create(`${path}/b`)
    await client.setData(path, null)
    expect(told.splice(0)).toEqual([`exists: dataChanged ${path}`, `data: dataChanged ${path}`])
    await client.setData(path, null)
    expect(told).toEqual([])

    await client.getData(`${path}/a`, { watch: named('data') })
    await client.getChildren(`${path}/a`, { watch: named('children') })
    await client.delete(`${path}/a`)
    expect(told).toEqual([`data: deleted ${path}/a`, `children: deleted ${path}/a`])
  })

  test('is not there after a read that was refused', async () => {
    await using client = await connected()
    const path = namespace()
    const { told, named } = recorder()
    expect(await failureOf(client.getData(path, { watch: named('data') }))).toBeInstanceOf(NoNode)
    expect(await failureOf(client.getChildren(path, { watch: named('children') }))).toBeInstanceOf(NoNode)
    await client.create(path)
    await client.delete(path)
    expect(told).toEqual([])
  })

  test('of one function reports it once, however often it was given', async () => {
    await using client = await connected()
    const path = namespace()
    const { told, named } = recorder()
    const watch = named('same')
    await client.create(path)
    await Promise.all([
      client.exists(path, { watch }),
      client.getData(path, { watch }),
      client.getChildren(path, { watch }),
    ])
    await client.delete(path)
    expect(told).toEqual([`same: deleted ${path}`])
  })

  test('sees a change behind the read, whichever client makes it', async () => {
    await using client = await connected()
    await using other = await connected()
    const path = namespace()
    await other.create(path)
    for (let round = 0; round < 50; round++) {
      const changed = new Promise<number>((resolve) => {
        const watch = () => resolve(round)
        void client.getData(path, { watch }).then(() => other.setData(path, null))
      })
      expect(await changed).toBe(round)
    }
  })

  test('is armed again on the next connection of the session, and receives what it missed', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts })
    await using other = await connected()
    const path = namespace()
    const { told, named } = recorder()
    await other.multi(['', '/set', '/gone', '/list', '/kept'].map((name) => op.create(path + name, null)))
    await client.getData(`${path}/set`, { watch: named('set') })
    await client.getData(`${path}/gone`, { watch: named('gone') })
    await client.exists(`${path}/new`, { watch: named('new') })
    await client.getChildren(`${path}/list`, { watch: named('list') })
    await client.getData(`${path}/kept`, { watch: named('kept') })
    await client.exists(`${path}/later`, { watch: named('later') })
    await client.getChildren(`${path}/kept`, { watch: named('kept children') })
    await whileAway(client, proxy, async () => {
      await other.setData(`${path}/set`, null)
      await other.delete(`${path}/gone`)
      await other.create(`${path}/new`)
      await other.create(`${path}/list/child`)
    })
    await client.sync(path)
    expect(told.splice(0).sort()).toEqual([
      `gone: deleted ${path}/gone`,
      `list: childrenChanged ${path}/list`,
      `new: created ${path}/new`,
      `set: dataChanged ${path}/set`,
    ])
    await other.setData(`${path}/kept`, null)
    await other.create(`${path}/kept/child`)
    await other.create(`${path}/later`)
    await client.sync(path)
    expect(told.splice(0).sort()).toEqual([
      `kept children: childrenChanged ${path}/kept`,
      `kept: dataChanged ${path}/kept`,
      `later: created ${path}/later`,
    ])
    // Nothing is left to be told twice.
    await whileAway(client, proxy, () => other.setData(`${path}/set`, null))
    await client.sync(path)
    expect(told).toEqual([])
  })

  variant('may be one of very many: all are armed again, in requests that fit', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts })
    await using other = await connected()
    const path = namespace()
    await other.create(path)
    // Some two megabytes of paths: more than the server takes in one request.
    const paths = Array.from({ length: 4_000 }, (_, index) => `${path}/${'x'.repeat(500)}${index}`)
    const told = new Set<string>()
    await Promise.all(paths.map((each) => client.exists(each, { watch: (event) => told.add(event.path) })))
    const missed = paths.slice(0, 300)
    await whileAway(client, proxy, () => other.multi(missed.map((each) => op.create(each, null))))
    await client.sync(path)
    expect([...told].sort()).toEqual([...missed].sort())
    for (let at = 300; at < paths.length; at += 500) {
      await other.multi(paths.slice(at, at + 500).map((each) => op.create(each, null)))
    }
    await client.sync(path)
    expect(told.size).toBe(paths.length)
  })

  test('is lost with the session, and says so once', async () => {
    await using client = await connected()
    const [path, folder] = [namespace(), namespace('folder')]
    await client.create(folder)
    const { told, named } = recorder()
    await client.exists(path, { watch: named('a') })
    await client.getChildren(folder, { watch: named('b') })
    const again = reaches(client, 'connecting').then(() => reaches(client, 'connected'))
    await expireSession(zookeeperHosts, sessionOf(client))
    await again
    expect(told.splice(0).sort()).toEqual([`a: lost ${path}`, `b: lost ${folder}`])
    await client.create(path)
    expect(told).toEqual([])
    await client.exists(path, { watch: named('closed') })
    await client.close()
    expect(told).toEqual([`closed: lost ${path}`])
  })

  test('that is asked for while the connection breaks is not there after it', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts })
    const path = namespace()
    const { told, named } = recorder()
    proxy.mode = 'swallow-replies'
    const asked = proxy.nextRequest()
    const reading = failureOf(client.exists(path, { watch: named('a') }))
    await asked
    proxy.mode = 'pass'
    proxy.resetAll()
    expect(await reading).toMatchObject({ name: 'ConnectionLoss' })
    await client.create(path)
    expect(told).toEqual([])
    // So the path is free for another mode.
    await client.watch(path, { mode: 'recursive' }, { events: () => undefined, gap: () => undefined })
  })

  test('beside a persistent one on the same path is refused, and works above and below it', async () => {
    await using client = await connected()
    const path = namespace()
    const { told, named } = recorder()
    const persistent: string[] = []
    const handler = {
      events: (batch: readonly { type: string; path: string }[]) =>
        void persistent.push(...batch.map(({ type, path: where }) => `${type} ${where}`)),
      gap: () => undefined,
    }
    await client.mkdirp(`${path}/r/below`)
    const watch = await client.watch(`${path}/r`, { mode: 'recursive' }, handler)
    const watching = { watch: named('no') }
    for (const read of ['exists', 'getData', 'getChildren'] as const) {
      const refused = await failureOf(client[read](`${path}/r`, watching))
      expect(refused).toBeInstanceOf(InvalidState)
      expect(String(refused)).toContain('recursive')
    }
    await client.getData(`${path}/r/below`, { watch: named('below') })
    await client.getChildren(path, { watch: named('above') })
    await client.setData(`${path}/r/below`, null)
    await client.setData(`${path}/r/below`, null)
    await client.create(`${path}/new`)
    expect(told).toEqual([`below: dataChanged ${path}/r/below`, `above: childrenChanged ${path}`])
    expect(persistent).toEqual([`dataChanged ${path}/r/below`, `dataChanged ${path}/r/below`])
    // Nor the other way round, while the one-shot watch waits.
    await client.exists(`${path}/new`, { watch: named('new') })
    const refused = client.watch(`${path}/new`, { mode: 'persistent' }, handler)
    expect(await failureOf(refused)).toBeInstanceOf(InvalidState)
    await client.delete(`${path}/new`)
    await client.watch(`${path}/new`, { mode: 'persistent' }, handler)
    await watch.remove()
    await client.exists(`${path}/r`, { watch: named('free') })
  })

  test('whose handler throws does not disturb others', async () => {
    await using client = await connected()
    const path = namespace()
    const { told, named } = recorder()
    const fail = () => {
      throw new Error('mine')
    }
    const faults: unknown[] = []
    client.on('error', (fault) => faults.push(fault))
    await client.exists(path, { watch: fail })
    await client.exists(path, { watch: named('second') })
    await client.create(path)
    expect(told).toEqual([`second: created ${path}`])
    expect(faults).toEqual([{ error: new Error('mine'), watch: path }])
    expect(client.state).toBe('connected')
  })
})

describe.skipIf(!zookeeperHosts)('what the server has to watch', () => {
  let server: ZooKeeperServer
  beforeAll(async () => {
    server = await startZooKeeper()
  })
  afterAll(() => server?.stop())

  const watched = async () => Number(/zk_watch_count\s+(\d+)/.exec(await server.fourLetter('mntr'))?.[1])
  const ignore = () => undefined

  test('is what is waited for, and nothing is left of it', async () => {
    await using client = await connected({ hosts: server.hosts })
    const path = namespace()
    const { told, named } = recorder()
    await client.create(path)
    const before = await watched()

    const first = named('first')
    await client.getData(path, { watch: first })
    await client.exists(path, { watch: ignore })
    await client.getChildren(path, { watch: ignore })
    expect(await watched()).toBe(before + 2)
    await client.removeWatches(path, { kind: 'data', handler: first })
    expect(await watched()).toBe(before + 2)
    await client.removeWatches(path, { kind: 'data' })
    expect(await watched()).toBe(before + 1)
    await client.removeWatches(path, { kind: 'children' })
    expect(await watched()).toBe(before)
    for (const kind of ['data', 'children', 'any'] as const) {
      const error = await failureOf(client.removeWatches(path, { kind }))
      expect(error).toBeInstanceOf(NoWatcher)
      expect(error).toMatchObject({ outcome: 'not-sent', path })
    }

    await client.getData(path, { watch: named('any') })
    await client.getChildren(path, { watch: named('any') })
    await client.removeWatches(path)
    const handler = { events: () => void told.push('persistent'), gap: ignore }
    await client.watch(path, { mode: 'persistent' }, handler)
    const watch = await client.watch(`${path}/r`, { mode: 'recursive' }, handler)
    // Servers count a persistent watch once or twice.
    const both = await watched()
    await client.removeWatches(path)
    const one = await watched()
    expect([both > one, one > before]).toEqual([true, true])
    await watch.remove()
    await client.setData(path, null)
    expect([await watched(), told]).toEqual([before, []])
  })

  test('is let go when the reading was given up before its answer came', async () => {
    await using client = await connected({ hosts: server.hosts })
    const path = namespace()
    const before = await watched()
    const { told, named } = recorder()
    const controller = new AbortController()
    const reason = new Error('enough')
    const givenUp = () => client.exists(path, { watch: named('given up'), signal: controller.signal })
    const reading = failureOf(givenUp())
    // Sent by now, and not answered.
    await new Promise<void>((resolve) => process.nextTick(() => process.nextTick(resolve)))
    controller.abort(reason)
    expect(await reading).toBe(reason)
    await client.sync(path)
    // What takes the watch away left behind the answer, and so ahead of this.
    await client.sync(path)
    expect(await watched()).toBe(before)
    // Not even asked for any more.
    expect(await failureOf(givenUp())).toBe(reason)

    const another = new AbortController()
    const first = failureOf(client.exists(path, { watch: named('first'), signal: another.signal }))
    const second = client.exists(path, { watch: named('second') })
    another.abort(reason)
    expect(await first).toBe(reason)
    await second
    await client.sync(path)
    expect(await watched()).toBe(before + 1)
    await client.create(path)
    expect([await watched(), told]).toEqual([before, [`second: created ${path}`]])
  })

  test('is not taken from a reading under way by the one before it', async () => {
    await using client = await connected({ hosts: server.hosts })
    const path = namespace()
    const before = await watched()
    const { told, named } = recorder()
    const first = named('first')
    await client.exists(path, { watch: first })
    const second = client.exists(path, { watch: named('second') })
    await client.removeWatches(path, { handler: first })
    await second
    expect(await watched()).toBe(before + 1)
    await client.create(path)
    expect(told).toEqual([`second: created ${path}`])
    expect(await watched()).toBe(before)
  })

  variant('comes to nothing after ten thousand watches that fired, were removed or lost', async () => {
    await using client = await connected({ hosts: server.hosts })
    const path = namespace()
    await client.create(path)
    const before = await watched()
    const paths = Array.from({ length: 10_000 }, (_, index) => `${path}/${index}`)
    await Promise.all(paths.map((each) => client.exists(each, { watch: ignore })))
    expect(await watched()).toBe(before + 10_000)
    await client.multi(paths.slice(0, 5_000).map((each) => op.create(each, null)))
    await Promise.all(paths.slice(5_000).map((each) => client.removeWatches(each)))
    expect(await watched()).toBe(before)
  })
})
