/** An owner that was stopped for longer than its lease, and goes on as if nothing had been. */
import { describe, expect } from 'vitest'
import { namespace, zookeeperHosts } from '../../../support/namespace.ts'
import { startProxy } from '../../../support/proxy.ts'
import { usual as test, variant } from '../../../variant.ts'
import { portOf } from '../../../zookeeper/clients.ts'
import { zookeeperPlace } from '../../boards.ts'
import { refresh } from '../../jobs.ts'
import { checkDisconnectedOwner, checkStoppedOwner } from '../../takeovers.ts'

describe.skipIf(!zookeeperHosts)('an owner whose lease has run out', () => {
  variant('because its process was stopped finds out before it does anything, and goes on by itself', async () => {
    await using place = await zookeeperPlace()
    await using nextOwner = await place.open({ who: 'next-owner' })
    await checkStoppedOwner({ nextOwner, uri: `${place.uri}?sessionTimeout=2s` })
  })

  test('because nothing gets through any more has lost its claim before another gets it', async () => {
    await using place = await zookeeperPlace()
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using owner = await place.openAt(proxy.hosts, { who: 'owner', parameters: '?sessionTimeout=2s' })
    await using nextOwner = await place.open({ who: 'next-owner' })
    await checkDisconnectedOwner({ owner, nextOwner, proxy })
  })

  test('two boards of one process on one path have each their own claims and leases', async () => {
    const path = namespace('board')
    await using place = await zookeeperPlace(zookeeperHosts, { path })
    const one = await place.open({ who: 'the process' })
    await using two = await place.open({ who: 'the process' })
    for (const name of ['a', 'b', 'c', 'd']) await one.post('flow', {}, { name, resources: { shared: ['disk'] } })
    await refresh(two)
    const mine = await one.claimNext({ max: 2 })
    // A board that has not received these claims would try the same jobs first, and get fewer than two.
    await refresh(two)
    const yours = await two.claimNext({ max: 2 })
    expect([...mine, ...yours].map(({ job }) => job.name)).toEqual(['a', 'b', 'c', 'd'])
    const waiting = two.claimNext({ max: 2 })
    await one.close()
    expect(mine.map(({ lost }) => lost.aborted)).toEqual([true, true])
    expect(yours.map(({ lost }) => lost.aborted)).toEqual([false, false])
    for (const claim of [...(await waiting), ...yours]) await claim.consume()
    while ((two.jobCount ?? 0) > 0) for (const claim of await two.claimNext()) await claim.consume()
    expect(await place.jobNodes()).toEqual([])
  })
})
