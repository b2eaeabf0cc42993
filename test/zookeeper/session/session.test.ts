import { describe, expect } from 'vitest'
import { op, ZooKeeper } from '../../../src/zookeeper/index.ts'
import { expireSession } from '../../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startProxy } from '../../support/proxy.ts'
import { startZooKeeper } from '../../support/zookeeper.ts'
import { usual as test, variant } from '../../variant.ts'
import { connected, failureOf, portOf, reaches, sessionOf, statesOf } from '../clients.ts'

const proxied = () => startProxy({ port: portOf(zookeeperHosts) })

describe.skipIf(!zookeeperHosts)('a session', () => {
  test('is negotiated, and its lease is shorter than it', async () => {
    // However short the session is to be, the server may take its time.
    await using short = new ZooKeeper({ hosts: zookeeperHosts, sessionTimeout: '500ms', connectTimeout: '1m' })
    await short.connect({ timeout: '1m' })
    const { session, now } = { session: short.session, now: performance.now() }
    expect(session?.timeout).toBe(1_000)
    expect((session?.leaseUntil ?? Number.POSITIVE_INFINITY) - now).toBeLessThanOrEqual(800)
    await using long = await connected({ sessionTimeout: '10m' })
    expect(long.session?.timeout).toBe(60_000)
  })

  test('stays alive by pings alone, which its lease is not moved by, but by what most servers agree to', async () => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts, sessionTimeout: '1s', tick: 100 })
    const states = statesOf(client)
    const before = client.session?.leaseUntil ?? 0
    for (let ping = 0; ping < 5; ping++) await proxy.nextRequest()
    await client.sync('/')
    expect(client.session?.leaseUntil).toBeLessThan(before + 100)
    await client.multi([])
    expect(client.session?.leaseUntil).toBeGreaterThan(before + 500)
    expect(states).toEqual([])
  })

  test('is proven again and again while a caller relies on it, and no longer', async () => {
    await using client = await connected({ sessionTimeout: '1s', tick: 100 })
    const sent = () => client.counters().operations['multi']?.sent ?? 0
    const states = statesOf(client)
    const hold = client.holdLease()
    const { session, until } = await hold.proven()
    expect(session).toBe(sessionOf(client))
    // Longer than the lease that there was at first.
    while (performance.now() < until) await client.exists('/')
    expect(client.session?.leaseUntil).toBeGreaterThan(performance.now())
    expect(sent()).toBeGreaterThan(2)
    hold.release()
    // A proof may have been requested in this turn, and not be sent yet.
    await client.exists('/')
    const proofs = sent()
    const end = performance.now() + 1_000
    while (performance.now() < end) await client.exists('/')
    expect(sent()).toBe(proofs)
    expect(states).toEqual([])
  })

  test('is the same one after the connection broke; what waited is sent, what was under way is unknown', async () => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts })
    await using observer = await connected()
    const path = namespace()
    await client.create(path, null, { ephemeral: true })
    const { id } = client.session ?? {}
    const states = statesOf(client)

    proxy.mode = 'swallow-replies'
    const asked = proxy.nextRequest()
    const underWay = failureOf(client.setData(path, Buffer.from('under way')))
    await asked
    const suspended = reaches(client, 'suspended')
    proxy.mode = 'refuse'
    proxy.resetAll()
    expect((await suspended).reason).toBeInstanceOf(Error)
    const waiting = Promise.all([client.sync(path), client.getData(path), client.exists(path, { session: id ?? 0n })])
    proxy.mode = 'pass'

    expect(await underWay).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown', path })
    const [, read] = await waiting
    // It had been done, and only the answer was lost.
    expect(String(Buffer.from(read.data ?? []))).toBe('under way')
    expect(client.session?.id).toBe(id)
    expect((await observer.exists(path))?.ephemeralOwner).toBe(id)
    expect(states).toEqual(['suspended', 'connected'])
  })

  test('that was expired is reported at once with its reason, and another one follows', async () => {
    await using client = await connected()
    await using observer = await connected()
    const path = namespace()
    await client.create(path, null, { ephemeral: true })
    const old = sessionOf(client)
    const announced = new Promise((resolve) => client.on('session', resolve))
    const lost = reaches(client, 'lost')
    const again = lost.then(() => reaches(client, 'connected'))
    await expireSession(zookeeperHosts, old)

    const event = await lost
    expect(event.reason).toMatchObject({ name: 'SessionExpired', outcome: 'refused' })
    expect(event.session).toBeUndefined()
    await again
    const session = sessionOf(client)
    expect(session).not.toBe(old)
    expect(await announced).toEqual({ session, previous: old })
    expect(await observer.exists(path)).toBeUndefined()
    const bound = failureOf(client.create(path, null, { session: old }))
    expect(await bound).toMatchObject({ name: 'SessionExpired', outcome: 'not-sent' })
    await client.create(path, null, { session })
  })

  test('that is over takes what waited for it along, and is not followed by another where that is not wanted', async () => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts, newSession: 'never' })
    const suspended = reaches(client, 'suspended')
    proxy.mode = 'refuse'
    proxy.resetAll()
    await suspended
    const waiting = failureOf(client.exists('/'))
    const lost = reaches(client, 'lost')
    await expireSession(zookeeperHosts, sessionOf(client))
    proxy.mode = 'pass'
    await lost
    expect(await waiting).toMatchObject({ name: 'SessionExpired', outcome: 'not-sent' })
    expect(await failureOf(client.exists('/'))).toMatchObject({ name: 'SessionExpired', outcome: 'not-sent' })
    expect(client.state).toBe('lost')
  })

  test('whose lease ends is over here before the server knows, and is closed there before the next one begins', async () => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts, sessionTimeout: '6s' })
    await using observer = await connected()
    const path = namespace()
    await client.create(path, null, { ephemeral: true })
    const states = statesOf(client)
    let believed: Promise<unknown> | undefined
    client.on('state', ({ state }) => {
      if (state !== 'lost') return
      believed = observer.exists(path)
      proxy.mode = 'pass'
    })
    const lost = reaches(client, 'lost')
    const again = lost.then(() => reaches(client, 'connected'))
    proxy.mode = 'blackhole'
    const underWay = failureOf(client.setData(path, null))
    expect((await lost).reason).toMatchObject({ name: 'SessionExpired' })
    expect(await believed).toBeDefined()
    await again
    await observer.sync(path)
    expect(await observer.exists(path)).toBeUndefined()
    expect(await underWay).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown' })
    expect(states).toEqual(['suspended', 'lost', 'connecting', 'connected'])
  })

  test('given up here says since when nothing is known of it, not what was wrong once', async () => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts, sessionTimeout: '2s', tick: 100 })
    const again = reaches(client, 'suspended').then(() => reaches(client, 'connected'))
    proxy.resetAll()
    await again
    expect(Object.keys(client.counters().faults)).toHaveLength(1)

    await using observer = await connected()
    const path = namespace()
    await observer.create(path)
    await client.watch(path, { mode: 'recursive' }, { events: () => undefined, gap: () => undefined })
    const losing = reaches(client, 'lost')
    proxy.mode = 'drop-requests'
    // The server is heard of all the time, so the connection is as good as any; but nothing gets to it.
    while (client.state === 'connected') await observer.setData(path, null)
    const { reason, previous } = await losing
    proxy.mode = 'pass'
    expect(previous).toBe('connected')
    expect(reason).toMatchObject({ name: 'SessionExpired', outcome: 'unknown' })
    expect(reason?.cause).toBeUndefined()
    const said = /session of 2000 ms .* was sent (\d+) ms ago, and 1900 ms are the limit/.exec(reason?.message ?? '')
    expect(Number(said?.[1])).toBeGreaterThanOrEqual(1_900)
  })

  test('survives a restart of the server', async () => {
    await using server = await startZooKeeper()
    await using client = await connected({ hosts: server.hosts })
    const { path } = await client.create('/e', null, { ephemeral: true })
    const id = sessionOf(client)
    const suspended = reaches(client, 'suspended')
    const restarted = server.restart()
    await suspended
    const waiting = client.exists(path)
    await restarted
    expect((await waiting)?.ephemeralOwner).toBe(id)
    expect(sessionOf(client)).toBe(id)
  })

  variant('begins anew on a server that has forgotten everything', async () => {
    await using first = await startZooKeeper()
    await using client = await connected({ hosts: first.hosts, sessionTimeout: '2s' })
    for (let write = 0; write < 20; write++) await client.create('/n', null, { sequential: true })
    const again = reaches(client, 'lost').then(() => reaches(client, 'connected'))
    await first.stop()
    await using second = await startZooKeeper({ port: first.port })
    await again
    expect(second.port).toBe(first.port)
    expect((await client.getChildren('/')).names).toEqual(['zookeeper'])
  })

  test('moves on to another server when one cannot be reached', async () => {
    await using gone = await proxied()
    gone.mode = 'refuse'
    await using client = await connected({ hosts: `${gone.hosts},${zookeeperHosts}` })
    expect(client.state).toBe('connected')
  })

  test('does not outlive a server that stops answering', async () => {
    await using server = await startZooKeeper()
    // In a shorter session, a client that its machine holds up may notice the end of the lease before the silence of the server.
    await using client = await connected({ hosts: server.hosts, sessionTimeout: '6s' })
    const states = statesOf(client)
    const lost = reaches(client, 'lost')
    await server.pause()
    await lost
    const again = reaches(client, 'connected')
    await server.resume()
    await again
    expect(states).toEqual(['suspended', 'lost', 'connecting', 'connected'])
  })
})

describe.skipIf(!zookeeperHosts)('closing', () => {
  test('answers what was asked before and settles everything', async () => {
    const client = await connected()
    const path = namespace()
    const asked = Promise.all([client.create(path), client.setData(path, null), client.getChildren(path)])
    const closing = client.close()
    expect(await failureOf(client.exists(path))).toMatchObject({ name: 'NotSent', outcome: 'not-sent' })
    await closing
    expect((await asked)[1].version).toBe(1)
    expect(client.state).toBe('closed')
    await client.close()
  })

  test('is bounded when nothing is answered any more', async () => {
    await using proxy = await proxied()
    const client = await connected({ hosts: proxy.hosts, sessionTimeout: '2s' })
    proxy.mode = 'blackhole'
    const underWay = failureOf(client.exists('/'))
    await client.close()
    expect(await underWay).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown' })
  })

  test('rejects what waits for a connection, and lets the ephemeral znodes go all the same', async () => {
    await using proxy = await proxied()
    await using observer = await connected()
    const client = await connected({ hosts: proxy.hosts })
    const path = namespace()
    await client.create(path, null, { ephemeral: true })
    const suspended = reaches(client, 'suspended')
    proxy.mode = 'refuse'
    proxy.resetAll()
    await suspended
    const waiting = failureOf(client.exists('/'))
    proxy.mode = 'pass'
    await client.close()
    expect(await waiting).toMatchObject({ name: 'NotSent', outcome: 'not-sent' })
    await observer.sync(path)
    expect(await observer.exists(path)).toBeUndefined()
  })

  test('while connecting ends connect()', async () => {
    await using proxy = await proxied()
    proxy.mode = 'blackhole'
    const client = new ZooKeeper({ hosts: proxy.hosts })
    const connecting = failureOf(client.connect())
    await proxy.nextRequest()
    await client.close()
    expect(await connecting).toMatchObject({ name: 'NotConnected' })
  })

  variant('may be asked for by a listener that is notified of the loss', async () => {
    await using client = await connected()
    let closing: Promise<void> | undefined
    client.on('state', ({ state }) => {
      if (state === 'lost' || state === 'closed') closing = client.close()
    })
    const closed = reaches(client, 'closed')
    await expireSession(zookeeperHosts, sessionOf(client))
    await closed
    await closing
    expect(client.state).toBe('closed')
  })
})

describe.skipIf(!zookeeperHosts)('a request', () => {
  test('that is given up is not sent if it was still waiting', async () => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts })
    const path = namespace()
    const suspended = reaches(client, 'suspended')
    proxy.mode = 'refuse'
    proxy.resetAll()
    await suspended
    const giveUp = new AbortController()
    const waiting = failureOf(client.create(path, null, { signal: giveUp.signal }))
    const reason = new Error('enough')
    giveUp.abort(reason)
    expect(await waiting).toBe(reason)
    proxy.mode = 'pass'
    expect(await client.exists(path)).toBeUndefined()
  })

  test('that is given up under way keeps its place in the order of answers', async () => {
    await using client = await connected()
    const path = namespace()
    const giveUp = new AbortController()
    const reason = new Error('enough')
    const asked = client.create(path, null, { signal: giveUp.signal })
    const next = client.exists(path)
    process.nextTick(() => giveUp.abort(reason))
    expect(await failureOf(asked)).toBe(reason)
    expect(await next).toBeDefined()
  })

  test('with a signal that has fired is never sent', async () => {
    await using client = await connected()
    const path = namespace()
    const reason = new Error('never')
    expect(await failureOf(client.create(path, null, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(await client.exists(path)).toBeUndefined()
  })

  test('that is too large is refused here and harms no other', async () => {
    await using client = await connected()
    const path = namespace()
    const states = statesOf(client)
    const data = new Uint8Array(1_048_576)
    const [large, small, many] = await Promise.all([
      failureOf(client.create(path, data)),
      client.create(path),
      failureOf(client.multi([op.setData(path, data)])),
    ])
    for (const error of [large, many]) expect(error).toMatchObject({ name: 'RequestTooLarge', outcome: 'not-sent' })
    expect(small.path).toBe(path)
    expect(states).toEqual([])
  })

  test('as large as a server takes is taken', async () => {
    await using client = await connected({ maxRequestBytes: 1_048_575 })
    const path = namespace()
    const frame = 8 + 4 + path.length + 4 + 4 + 4 + 4 + 5 + 4 + 6 + 4
    await client.create(path, new Uint8Array(1_048_575 - frame))
    expect((await client.getData(path)).stat.dataLength).toBe(1_048_575 - frame)
    expect(await failureOf(client.create(`${path}x`, new Uint8Array(1_048_575 - frame)))).toMatchObject({
      name: 'RequestTooLarge',
    })
  })

  test('is answered in order, however many megabytes are under way at once', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path)
    const data = new Uint8Array(500_000)
    const written = await Promise.all(Array.from({ length: 60 }, () => client.setData(path, data)))
    expect(written.map((stat) => stat.version)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1))
  })
})
