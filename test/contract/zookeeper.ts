/**
 * What every driver of ZooKeeper must do. Our client and the adapter over the official C client run it side by side: where
 * they agree, the C client is the witness for ours. The parts are in `zookeeper/`, by what they are about.
 */
import { describe } from 'vitest'
import type { Capabilities, ZooKeeperDriver } from '../../src/zookeeper/index.ts'
import { aclContract } from './zookeeper/acls.ts'
import { capabilitiesContract } from './zookeeper/capabilities.ts'
import { outcomesContract } from './zookeeper/outcomes.ts'
import { sessionsContract } from './zookeeper/sessions.ts'
import { oneShotContract } from './zookeeper/watches.ts'
import { znodesContract } from './zookeeper/znodes.ts'

export interface DriverOptions {
  readonly hosts: string
  readonly sessionTimeout?: number
  readonly newSession?: 'automatic' | 'never'
  readonly auth?: readonly { readonly scheme: string; readonly auth: string }[]
}

export interface DriverUnderTest {
  readonly name: string
  readonly capabilities: Capabilities
  /** Not connected yet. */
  make(options: DriverOptions): ZooKeeperDriver
}

export function driverContract(driver: DriverUnderTest): void {
  describe(`driver contract on ${driver.name}`, () => {
    znodesContract(driver)
    aclContract(driver)
    oneShotContract(driver)
    sessionsContract(driver)
    outcomesContract(driver)
    capabilitiesContract(driver)
  })
}
