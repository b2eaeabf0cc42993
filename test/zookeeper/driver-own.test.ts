/** Our client, as a driver. */
import { describe } from 'vitest'
import { EVERYTHING, ZooKeeper } from '../../src/zookeeper/index.ts'
import { driverContract } from '../contract/zookeeper.ts'
import { zookeeperHosts } from '../support/namespace.ts'

describe.skipIf(!zookeeperHosts)('on a real server', () => {
  driverContract({ name: 'our client', capabilities: EVERYTHING, make: (options) => new ZooKeeper(options) })
})
