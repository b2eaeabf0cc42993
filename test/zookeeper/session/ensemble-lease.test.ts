/**
 * A server that is cut off from its leader goes on answering pings, and a leader that is cut off from the others goes on
 * answering even a sync. Whoever takes those for proof believes in a session that has ended; whoever relies on the lease
 * has stopped by then.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type WatchEvent, ZooKeeper } from '../../../src/zookeeper/index.ts'
import { type Ensemble, startEnsemble } from '../../support/ensemble.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { connected, reaches } from '../clients.ts'
import { connectedTo } from '../ensemble-clients.ts'

const TICK = 500
const OWNER = { sessionTimeout: '2s', tick: TICK, newSession: 'never' } as const

describe.skipIf(!zookeeperHosts)('an owner whose server is cut off from the leader', () => {
  let ensemble: Ensemble
  beforeAll(async () => {
    // So long that a server goes on without its leader, or without its followers, for longer than sessions last.
    ensemble = await startEnsemble({ links: true, tickTime: TICK, syncLimit: 60 })
  })
  afterEach(() => ensemble?.links.heal())
  afterAll(() => ensemble?.stop())

  test.each([
    ['hears it, and is not heard', 'drop-requests'],
    ['hears nothing of it', 'blackhole'],
  ] as const)('(which %s) knows in time, when no other server can be reached', async (_, mode) => {
    const leader = await ensemble.leader()
    const follower = await ensemble.follower()
    await using observer = await connectedTo(leader, ensemble)
    await using owner = await connected({ hosts: follower.proxy.hosts, ...OWNER })
    using hold = owner.holdLease()
    const { session } = await hold.proven()
    const path = namespace()
    await observer.create(path)
    await owner.create(`${path}/owner`, null, { ephemeral: true, session })
    let leaseUntil = 0
    let endedAt = Number.POSITIVE_INFINITY
    const lost = reaches(owner, 'lost')
    owner.on('state', ({ state }) => {
      if (state === 'lost') endedAt = performance.now()
    })
    const watching = setInterval(() => {
      leaseUntil = owner.session?.leaseUntil ?? leaseUntil
    }, 10)
    const given = deletion(observer, `${path}/owner`)

    ensemble.links.set(mode, { from: follower, to: leader })
    const givenAt = await given
    await lost
    clearInterval(watching)
    expect(endedAt).toBeLessThan(givenAt)
    expect(leaseUntil).toBeLessThan(givenAt)
  })

  test('still receives good answers from a server that does not know: pings prove nothing', async () => {
    const leader = await ensemble.leader()
    const follower = await ensemble.follower()
    await using observer = await connectedTo(leader, ensemble)
    await using believer = await connectedTo(follower, ensemble, OWNER)
    const path = namespace()
    await believer.create(path, null, { ephemeral: true })
    const given = deletion(observer, path)
    ensemble.links.set('blackhole', { from: follower, to: leader })
    await given
    expect(believer.state).toBe('connected')
  })

  test('knows in time that its server is the leader no more, though that one does not', async () => {
    const leader = await ensemble.leader()
    const followers = await ensemble.followers()
    await using owner = await connected({ hosts: leader.proxy.hosts, ...OWNER })
    await using believer = await connected({ hosts: leader.proxy.hosts, ...OWNER })
    using hold = owner.holdLease()
    await hold.proven()
    const path = namespace()
    await owner.create(path, null, { ephemeral: true })
    let endedAt = Number.POSITIVE_INFINITY
    const lost = reaches(owner, 'lost')
    owner.on('state', ({ state }) => {
      if (state === 'lost') endedAt = performance.now()
    })
    // The others elect one of them, and it hears nothing of that.
    ensemble.links.depose(leader)
    await using observer = new ZooKeeper({ hosts: followers.map(({ hosts }) => hosts).join() })
    await observer.connect({ timeout: '1m' })
    const givenAt = await deletion(observer, path)
    // It even answers a sync.
    await believer.sync(path)
    expect(await believer.exists(path)).toBeDefined()
    await lost
    expect(endedAt).toBeLessThan(givenAt)
  })
})

/** When a znode, which is there or was, is seen to be deleted. */
async function deletion(observer: ZooKeeper, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const events = (batch: readonly WatchEvent[]) => {
      if (batch.some(({ type }) => type === 'deleted')) resolve(performance.now())
    }
    observer
      .watch(path, { mode: 'persistent' }, { events, gap: () => undefined })
      .then(() => observer.exists(path))
      .then((stat) => stat ?? resolve(performance.now()), reject)
  })
}
