/** Servers match answers with requests by the number of the request, also where the session has moved from one to another. */
import { expect } from 'vitest'
import { ConnectionLoss, NoNode, type ZooKeeper } from '../../../src/zookeeper/index.ts'
import { type EnsembleServer, startEnsemble } from '../../support/ensemble.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { variant } from '../../variant.ts'
import { failureOf } from '../clients.ts'
import { connectedTo } from '../ensemble-clients.ts'

/** Resolves when the server has a request that it cannot answer yet. */
async function hasOutstanding(server: EnsembleServer): Promise<void> {
  while (!/Outstanding: [1-9]/.test(await server.fourLetter('srvr')));
}

function next(client: ZooKeeper, wanted: string): Promise<void> {
  return new Promise((resolve) => {
    const off = client.on('state', ({ state }) => {
      if (state !== wanted) return
      off()
      resolve()
    })
  })
}

variant.skipIf(!zookeeperHosts)(
  'a request is not answered with what became of one that the session sent to another server',
  async () => {
    // With two of four servers stopped the leader gets no majority: writes wait, and sessions can move.
    await using ensemble = await startEnsemble({ servers: 4, syncLimit: 40 })
    const leader = await ensemble.leader()
    const [target, ...others] = await ensemble.followers()
    if (!target) throw new Error('there is no follower')
    await using client = await connectedTo(leader, ensemble, { sessionTimeout: '20s' })
    for (const server of others) await server.pause()
    const created = failureOf(client.create('/created'))
    await hasOutstanding(leader)
    for (const { id, proxy } of ensemble.servers) proxy.mode = id === target.id ? 'pass' : 'refuse'
    const [suspended, connected] = [next(client, 'suspended'), next(client, 'connected')]
    leader.proxy.resetAll()
    await suspended
    const deleted = failureOf(client.delete('/never-there'))
    await connected
    await hasOutstanding(target)
    for (const server of others) await server.resume()
    expect(await created).toBeInstanceOf(ConnectionLoss)
    expect(await deleted).toBeInstanceOf(NoNode)
  },
)
