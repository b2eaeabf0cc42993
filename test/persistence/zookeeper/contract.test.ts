import { describe } from 'vitest'
import { openPersistence } from '../../../src/persistence/index.ts'
import { persistenceContract } from '../../contract/persistence.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'

describe.skipIf(!zookeeperHosts)('logbooks in ZooKeeper', () => {
  persistenceContract({
    name: 'zookeeper:',
    storage: async () => {
      const uri = `zookeeper://${zookeeperHosts}${namespace('logbooks')}/logbooks`
      return { open: () => openPersistence(uri), [Symbol.asyncDispose]: async () => undefined }
    },
  })
})
