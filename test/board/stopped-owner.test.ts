/** An owner that was stopped for longer than its lease, and goes on as if nothing had been. */
import { describe, expect, test } from 'vitest'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { startNode } from '../support/node-process.ts'
import { startProxy } from '../support/proxy.ts'
import { portOf } from '../zookeeper/clients.ts'
import { zookeeperPlace } from './boards.ts'
import { lossOf, next, rebirthOf } from './events.ts'
import { all, refresh } from './jobs.ts'

const CLAIMER = new URL('./stopped-claimer.ts', import.meta.url)

describe.skipIf(!zookeeperHosts)('an owner whose lease has run out', () => {
  test('because its process was stopped finds out before it does anything, and goes on by itself', async () => {
    await using place = await zookeeperPlace()
    await using heir = await place.open({ who: 'heir' })
    await heir.post('flow', {}, { name: 'first' })
    await using owner = await startNode(CLAIMER, [`${place.uri}?sessionTimeout=2s`])
    await owner.says('claimed')
    await owner.says('held')
    const inherited = heir.claimNext()
    owner.signal('SIGSTOP')
    const [claim] = await inherited
    expect(claim).toMatchObject({ who: 'heir', run: 2 })
    expect(claim.job.attempts).toMatchObject([{ who: 'stopped' }, { who: 'heir' }])
    expect(await heir.entities('conductor')).toEqual([])

    const before = owner.lines.length
    owner.signal('SIGCONT')
    await owner.says(/^consume: /)
    const after = owner.lines.slice(before)
    // By a timer or by being asked, whichever comes first; it never says again that it holds the claim.
    expect(after.slice(0, 3)).not.toContain('held')
    expect(after).toContain('lost')
    expect(after).toContain('consume: JOBBOARD_CLAIM_LOST')
    expect(claim.lost.aborted).toBe(false)
    await claim.consume()

    await heir.post('flow', {}, { name: 'second' })
    await owner.says('claimed second, run 1')
    await owner.says('consumed')
    await refresh(heir)
    expect(heir.jobCount).toBe(0)
    while ((await heir.entities('conductor')).length === 0) await refresh(heir)
  })

  test('because nothing gets through any more has lost its claim before another gets it', async () => {
    await using place = await zookeeperPlace()
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using owner = await place.openAt(proxy.hosts, { who: 'owner', parameters: '?sessionTimeout=2s' })
    await using heir = await place.open({ who: 'heir' })
    await owner.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
    await owner.post('flow', {}, { name: 'job', resources: { exclusive: ['disk'] } })
    const [claim] = await owner.claimNext()
    await refresh(heir)
    const order: string[] = []
    const [lost, back] = [lossOf(claim).then(() => order.push('lost')), rebirthOf(owner)]
    const abandoned = next(heir, 'abandoned').then(() => order.push('abandoned'))
    const inherited = heir.claimNext().then(([taken]) => {
      order.push('inherited')
      return taken
    })
    proxy.mode = 'blackhole'
    await Promise.all([lost, abandoned])
    const taken = await inherited
    expect(order).toEqual(['lost', 'abandoned', 'inherited'])
    expect(taken.fence).toBeGreaterThan(claim.fence)
    proxy.mode = 'pass'
    proxy.resetAll()
    await back
    while ((await owner.entities('conductor')).length === 0) await refresh(owner)
    expect(taken.lost.aborted).toBe(false)
    await taken.consume()
    expect(await all(owner.jobs({ ensureFresh: true }))).toEqual([])
  })

  test('two boards of one process on one path have each their own claims and leases', async () => {
    const path = namespace('board')
    await using place = await zookeeperPlace(zookeeperHosts, { path })
    const one = await place.open({ who: 'the process' })
    await using two = await place.open({ who: 'the process' })
    for (const name of ['a', 'b', 'c', 'd']) await one.post('flow', {}, { name, resources: { shared: ['disk'] } })
    await refresh(two)
    const [mine, yours] = [await one.claimNext({ max: 2 }), await two.claimNext({ max: 2 })]
    expect([...mine, ...yours].map(({ job }) => job.name)).toEqual(['a', 'b', 'c', 'd'])
    const waiting = two.claimNext({ max: 2 })
    await one.close()
    expect(mine.map(({ lost }) => lost.aborted)).toEqual([true, true])
    expect(yours.map(({ lost }) => lost.aborted)).toEqual([false, false])
    for (const claim of [...(await waiting), ...yours]) await claim.consume()
    while (two.jobCount > 0) for (const claim of await two.claimNext()) await claim.consume()
    expect(await place.jobNodes()).toEqual([])
  })
})
