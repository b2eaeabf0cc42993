import { describe, expect, test } from 'vitest'
import { InvalidState } from '../../../src/core/errors.ts'
import { op, type WatchEvent } from '../../../src/zookeeper/index.ts'
import { expireSession } from '../../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startProxy } from '../../support/proxy.ts'
import { connected, failureOf, portOf, reaches, sessionOf } from '../clients.ts'

/** A handler that writes down what it is told, one entry a call. */
function recorder() {
  const told: (string[] | 'gap')[] = []
  const handler = {
    events: (batch: readonly WatchEvent[]) => void told.push(batch.map(({ type, path }) => `${type} ${path}`)),
    gap: () => void told.push('gap'),
  }
  return { told, handler }
}

describe.skipIf(!zookeeperHosts)('a watch', () => {
  test('recursive reports the znode and everything below it, even where there is nothing yet', async () => {
    await using client = await connected()
    const path = namespace()
    const { told, handler } = recorder()
    await client.watch(path, { mode: 'recursive' }, handler)
    await client.create(path)
    await client.create(`${path}/a`)
    await client.create(`${path}/a/b`)
    await client.setData(`${path}/a/b`, null)
    await client.delete(`${path}/a/b`)
    await client.create(`${path}x`)
    expect(told).toEqual([
      [`created ${path}`],
      [`created ${path}/a`],
      [`created ${path}/a/b`],
      [`dataChanged ${path}/a/b`],
      [`deleted ${path}/a/b`],
    ])
  })

  test('persistent reports the znode and children made and deleted', async () => {
    await using client = await connected()
    const path = namespace()
    const { told, handler } = recorder()
    await client.watch(path, { mode: 'persistent' }, handler)
    await client.create(path)
    await client.create(`${path}/a`)
    await client.setData(`${path}/a`, null)
    await client.setData(path, null)
    await client.delete(`${path}/a`)
    await client.delete(path)
    await client.create(path)
    expect(told).toEqual([
      [`created ${path}`],
      [`childrenChanged ${path}`],
      [`dataChanged ${path}`],
      [`childrenChanged ${path}`],
      [`deleted ${path}`],
      [`created ${path}`],
    ])
  })

  test('has reported everything that came before an answer when the answer is there', async () => {
    await using client = await connected()
    await using other = await connected()
    const path = namespace()
    await client.create(path)
    const seen = new Set<string>()
    await client.watch(
      path,
      { mode: 'recursive' },
      {
        events: (batch) => {
          for (const event of batch) seen.add(event.path)
        },
        gap: () => undefined,
      },
    )
    const listings = Array.from({ length: 50 }, async () => {
      await other.multi(Array.from({ length: 10 }, () => op.create(`${path}/n`, null, { sequential: true })))
      const { names } = await client.getChildren(path)
      const missing = names.filter((name) => !seen.has(`${path}/${name}`))
      expect(missing).toEqual([])
      return names.length
    })
    expect(Math.max(...(await Promise.all(listings)))).toBe(500)
  })

  test('hands on the events of one transaction before its answer', async () => {
    await using client = await connected()
    const path = namespace()
    const { told, handler } = recorder()
    await client.watch(path, { mode: 'recursive' }, handler)
    await client.multi([
      op.create(path, null),
      op.create(`${path}/a`, null),
      op.setData(path, null),
      op.delete(`${path}/a`),
    ])
    const all = [`created ${path}`, `created ${path}/a`, `dataChanged ${path}`, `deleted ${path}/a`]
    expect(told.flat()).toEqual(all)
  })

  test('reports nothing more once it is removed', async () => {
    await using client = await connected()
    const path = namespace()
    const first = recorder()
    const second = recorder()
    const watch = await client.watch(path, { mode: 'recursive' }, first.handler)
    const another = await client.watch(path, { mode: 'recursive' }, second.handler)
    await watch.remove()
    await client.create(path)
    await another.remove()
    await another.remove()
    await client.setData(path, null)
    expect(first.told).toEqual([])
    expect(second.told).toEqual([[`created ${path}`]])
    // The path is free again, for either mode.
    const third = recorder()
    await client.watch(path, { mode: 'persistent' }, third.handler)
    await client.setData(path, null)
    expect(third.told).toEqual([[`dataChanged ${path}`]])
  })

  test('of the other mode on the same path is refused', async () => {
    await using client = await connected()
    const path = namespace()
    await client.watch(path, { mode: 'recursive' }, recorder().handler)
    const refused = client.watch(path, { mode: 'persistent' }, recorder().handler)
    expect(await failureOf(refused)).toBeInstanceOf(InvalidState)
  })

  test('is armed again on the next connection, and the gap is reported before anything that waited is sent', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts })
    await using other = await connected()
    const path = namespace()
    await client.create(path)
    const order: string[] = []
    let listed: Promise<unknown> | undefined
    await client.watch(
      path,
      { mode: 'recursive' },
      {
        events: (batch) => order.push(...batch.map((event) => event.path)),
        gap: () => {
          order.push('gap')
          listed = client.getChildren(path).then(({ names }) => order.push(`listed ${names}`))
        },
      },
    )
    const suspended = reaches(client, 'suspended')
    proxy.mode = 'refuse'
    proxy.resetAll()
    await suspended
    await other.create(`${path}/missed`)
    const waited = client.create(`${path}/waited`).then(() => order.push('waited'))
    proxy.mode = 'pass'
    await waited
    await listed
    await other.create(`${path}/later`)
    await client.sync(path)
    expect(order).toEqual(['gap', 'listed missed', `${path}/waited`, 'waited', `${path}/later`])
  })

  test('outlives its session', async () => {
    await using client = await connected()
    const path = namespace()
    const { told, handler } = recorder()
    await client.watch(path, { mode: 'recursive' }, handler)
    const again = reaches(client, 'connecting').then(() => reaches(client, 'connected'))
    await expireSession(zookeeperHosts, sessionOf(client))
    await again
    await client.create(path)
    // More than one gap where the client was back for a moment before its session was closed.
    expect(told.filter((entry) => entry !== 'gap')).toEqual([[`created ${path}`]])
    expect(told[0]).toBe('gap')
  })

  test('that is asked for while the connection breaks is armed with the next one', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts })
    const path = namespace()
    const { told, handler } = recorder()
    proxy.mode = 'swallow-replies'
    const asked = proxy.nextRequest()
    const watching = client.watch(path, { mode: 'recursive' }, handler)
    await asked
    proxy.mode = 'pass'
    proxy.resetAll()
    await watching
    await client.create(path)
    expect(told.filter((entry) => entry !== 'gap')).toEqual([[`created ${path}`]])
  })

  test('whose handler throws does not disturb others', async () => {
    await using client = await connected()
    const path = namespace()
    const fail = () => {
      throw new Error('mine')
    }
    const { told, handler } = recorder()
    const faults: unknown[] = []
    client.on('error', (fault) => faults.push(fault))
    await client.watch(path, { mode: 'recursive' }, { events: fail, gap: fail })
    await client.watch(path, { mode: 'recursive' }, handler)
    await client.create(path)
    expect(told).toEqual([[`created ${path}`]])
    expect(faults).toEqual([{ error: new Error('mine'), watch: path }])
    expect(client.state).toBe('connected')
  })
})
