import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ZooKeeper } from '../../src/zookeeper/index.ts'
import { statesOf } from '../chaos/zookeeper/observed.ts'
import { type Ensemble, startEnsemble } from '../support/ensemble.ts'
import { expireSession } from '../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { failureOf, reaches, sessionOf } from './clients.ts'
import { connectedTo, Load } from './ensemble-clients.ts'

describe.skipIf(!zookeeperHosts)('an ensemble', () => {
  let ensemble: Ensemble
  beforeAll(async () => {
    ensemble = await startEnsemble()
  })
  afterAll(() => ensemble?.stop())

  test('has a leader and followers, and a client is connected to one of them', async () => {
    const leader = await ensemble.leader()
    const followers = await ensemble.followers()
    expect([leader, ...followers].map(({ id }) => id).sort()).toEqual([1, 2, 3])
    for (const server of ensemble.servers) {
      await using client = await connectedTo(server, ensemble)
      expect((await ensemble.serverOf(sessionOf(client))).id).toBe(server.id)
    }
  })

  test('whose leader is killed loses no session, no ephemeral znode and nothing that was done', async () => {
    const leader = await ensemble.leader()
    const clients: ZooKeeper[] = []
    for (const server of ensemble.servers) {
      clients.push(await connectedTo(server, ensemble, { sessionTimeout: '30s' }))
    }
    try {
      const folders = await Promise.all(
        clients.map(async (client) => {
          const path = namespace()
          await client.create(path)
          await client.create(`${path}/owner`, null, { ephemeral: true })
          return path
        }),
      )
      const sessions = clients.map(sessionOf)
      const states = clients.map(statesOf)
      const loads = clients.map((client, at) => new Load(client, folders[at] ?? '', 20))
      await Promise.all(loads.map((load) => load.nextDone()))
      await leader.kill()
      await Promise.all(loads.map((load) => load.nextDone()))
      await Promise.all(loads.map((load) => load.stop()))

      for (const seen of states) expect(seen).not.toContain('lost')
      expect(clients.map(sessionOf)).toEqual(sessions)
      await using observer = await connectedTo(await ensemble.leader(), ensemble)
      for (const [at, folder] of folders.entries()) {
        const { done, failed } = loads[at] ?? {}
        const there = new Set((await observer.getChildren(folder)).names.map((name) => `${folder}/${name}`))
        expect(done?.filter((path) => !there.has(path))).toEqual([])
        expect(Object.keys(failed ?? {}).filter((outcome) => !['unknown', 'not-sent'].includes(outcome))).toEqual([])
        expect((await observer.exists(`${folder}/owner`))?.ephemeralOwner).toBe(sessions[at])
      }
    } finally {
      await Promise.all(clients.map((client) => client.close()))
      await leader.restart()
    }
  })

  test('one of whose followers is killed: its clients move on, the others do not notice', async () => {
    const [follower, other] = await ensemble.followers()
    if (!follower || !other) throw new Error('there are not two followers')
    await using moving = await connectedTo(follower, ensemble)
    await using staying = await connectedTo(other, ensemble)
    const session = sessionOf(moving)
    const states = [statesOf(moving), statesOf(staying)]
    const again = reaches(moving, 'connected')
    await follower.kill()
    await again
    expect(sessionOf(moving)).toBe(session)
    expect((await ensemble.serverOf(session)).id).not.toBe(follower.id)
    await staying.sync('/')
    expect(states).toEqual([['suspended', 'connected'], []])
    await follower.restart()
  })

  test('whose leader is stopped goes on with another one, and so do the sessions of its clients', async () => {
    const leader = await ensemble.leader()
    const follower = await ensemble.follower()
    const options = { sessionTimeout: '8s', connectTimeout: '500ms' } as const
    await using atLeader = await connectedTo(leader, ensemble, options)
    await using atFollower = await connectedTo(follower, ensemble, options)
    const clients = [atLeader, atFollower]
    const paths = clients.map(() => namespace())
    await Promise.all(clients.map((client, at) => client.create(paths[at] ?? '', null, { ephemeral: true })))
    const sessions = clients.map(sessionOf)
    const states = clients.map(statesOf)
    const again = clients.map((client) => reaches(client, 'connected'))
    await leader.pause()
    try {
      await Promise.all(again)
      const [first, second] = await Promise.all(clients.map((client, at) => client.exists(paths[at] ?? '')))
      expect([first?.ephemeralOwner, second?.ephemeralOwner]).toEqual(sessions)
      for (const seen of states) expect(seen).not.toContain('lost')
      expect((await ensemble.serverOf(sessionOf(atLeader))).id).not.toBe(leader.id)
    } finally {
      await leader.resume()
    }
  })

  test('that is restarted as a whole keeps its sessions, and what waited is done', async () => {
    await using client = await connectedTo(await ensemble.follower(), ensemble, { sessionTimeout: '30s' })
    const path = namespace()
    await client.create(path, null, { ephemeral: true })
    const session = sessionOf(client)
    const suspended = reaches(client, 'suspended')
    const restarted = ensemble.restart()
    await suspended
    const waiting = client.setData(path, Buffer.from('waited'))
    await restarted
    expect((await waiting).ephemeralOwner).toBe(session)
    expect(sessionOf(client)).toBe(session)
  })

  test('ends a session for everybody when a twin ends it on another server', async () => {
    const [one, other] = await ensemble.followers()
    if (!one || !other) throw new Error('there are not two followers')
    await using client = await connectedTo(one, ensemble)
    await using observer = await connectedTo(await ensemble.leader(), ensemble)
    const path = namespace()
    await client.create(path, null, { ephemeral: true })
    const lost = reaches(client, 'lost')
    await expireSession(other.hosts, sessionOf(client))
    expect((await lost).reason).toMatchObject({ name: 'SessionExpired' })
    expect(await observer.exists(path)).toBeUndefined()
  })

  test('without a quorum gives no session, and serves again when it has one', async () => {
    const [one, other] = await ensemble.followers()
    await using client = await connectedTo(await ensemble.leader(), ensemble, { sessionTimeout: '30s' })
    const session = sessionOf(client)
    const suspended = reaches(client, 'suspended')
    await Promise.all([one?.kill(), other?.kill()])
    await suspended
    const again = reaches(client, 'connected')
    const without = new ZooKeeper({ hosts: ensemble.hosts })
    expect(await failureOf(without.connect({ timeout: 500 }))).toMatchObject({ name: 'NotConnected' })
    await using waiting = new ZooKeeper({ hosts: ensemble.hosts, sessionTimeout: '30s' })
    const connecting = waiting.connect()
    await Promise.all([one?.restart(), other?.restart()])
    await Promise.all([connecting, again])
    expect(sessionOf(client)).toBe(session)
  })
})

describe.skipIf(!zookeeperHosts)('a server that is behind', () => {
  let ensemble: Ensemble
  beforeAll(async () => {
    ensemble = await startEnsemble({ links: true })
  })
  afterAll(() => ensemble?.stop())

  test('shows the past, unless it is asked to catch up first', async () => {
    const follower = await ensemble.follower()
    await using writer = await connectedTo(await ensemble.leader(), ensemble)
    await using reader = await connectedTo(follower, ensemble)
    const path = namespace()
    await writer.create(path)
    await reader.sync(path)
    let stale = 0
    ensemble.links.slow({ delay: 30 }, follower)
    try {
      for (let version = 1; version <= 25; version++) {
        await writer.setData(path, null)
        const [before, , after] = await Promise.all([reader.exists(path), reader.sync(path), reader.exists(path)])
        if ((before?.version ?? 0) < version) stale++
        expect(after?.version).toBe(version)
      }
      // If the server had not been behind, that would have proved nothing.
      expect(stale).toBeGreaterThan(0)
    } finally {
      ensemble.links.heal()
    }
  })

  test('does not get a client that has seen more, until it has caught up', async () => {
    const leader = await ensemble.leader()
    const follower = await ensemble.follower()
    await using client = await connectedTo(leader, ensemble)
    const path = namespace()
    await client.create(path)
    ensemble.links.slow({ delay: 200 }, follower)
    try {
      const { version } = await client.setData(path, null)
      const again = reaches(client, 'connected')
      for (const { id, proxy } of ensemble.servers) if (id !== follower.id) proxy.mode = 'refuse'
      for (const { proxy } of ensemble.servers) proxy.resetAll()
      await again
      expect((await ensemble.serverOf(sessionOf(client))).id).toBe(follower.id)
      expect((await client.exists(path))?.version).toBe(version)
    } finally {
      for (const { proxy } of ensemble.servers) proxy.mode = 'pass'
      ensemble.links.heal()
    }
  })

  test('does not do any more what its client asked before it moved on', async () => {
    const follower = await ensemble.follower()
    await using client = await connectedTo(follower, ensemble)
    await using observer = await connectedTo(follower, ensemble)
    const path = namespace()
    ensemble.links.slow({ delay: 150 }, follower)
    try {
      const again = reaches(client, 'connected')
      const asked = follower.proxy.nextRequest()
      const underWay = failureOf(client.create(path))
      await asked
      // Arrived at the follower; what it hands on to the leader is still under way.
      expect(await observer.exists('/')).toBeDefined()
      follower.proxy.mode = 'refuse'
      follower.proxy.resetAll()
      await again
      follower.proxy.mode = 'pass'
      expect(await underWay).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown' })
      await client.sync(path)
      const then = await client.exists(path)
      // Behind everything that the follower has handed on.
      await using late = await connectedTo(follower, ensemble)
      await late.sync(path)
      await client.sync(path)
      expect((await client.exists(path))?.czxid).toBe(then?.czxid)
    } finally {
      follower.proxy.mode = 'pass'
      ensemble.links.heal()
    }
  })

  test('is cut off from the others: its clients move to them, with their sessions', async () => {
    const follower = await ensemble.follower()
    await using client = await connectedTo(follower, ensemble)
    const session = sessionOf(client)
    const again = reaches(client, 'connected')
    ensemble.links.isolate(follower)
    try {
      await again
      await client.sync('/')
      expect(sessionOf(client)).toBe(session)
      expect((await ensemble.serverOf(session)).id).not.toBe(follower.id)
    } finally {
      ensemble.links.heal()
    }
  })
})
