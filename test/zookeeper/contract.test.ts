/** Our client, as a driver. */
import { describe } from 'vitest'
import { ALL_CAPABILITIES, ZooKeeper } from '../../src/zookeeper/index.ts'
import { driverContract } from '../contract/zookeeper.ts'
import { zookeeperHosts } from '../support/namespace.ts'

describe.skipIf(!zookeeperHosts)('on a real server', () => {
  driverContract({ name: 'our client', capabilities: ALL_CAPABILITIES, make: (options) => new ZooKeeper(options) })
})
