/** What is declared is there; what is not is refused by its name. */
import { expect, test } from 'vitest'
import { UnsupportedCapability } from '../../../src/core/errors.ts'
import * as zk from '../../../src/zookeeper/index.ts'
import { namespace } from '../../support/namespace.ts'
import { failureOf } from '../../zookeeper/clients.ts'
import type { DriverUnderTest } from '../zookeeper.ts'
import { connected, READ_AHEAD_FRACTION } from './driven.ts'

type Needs = (client: zk.ZooKeeperDriver, path: string) => Promise<unknown>

/** Something that cannot be done without it. */
const NEEDS = {
  multi: (client, path) => client.multi([zk.op.create(path, READ_AHEAD_FRACTION)]),
  persistentWatch: (client, path) => {
    return client.watch(path, { mode: 'recursive' }, { events: () => undefined, gap: () => undefined })
  },
  aclOnCreate: (client, path) => client.create(path, READ_AHEAD_FRACTION, { acl: zk.ACL.read }),
  nullData: (client, path) => client.create(path, null),
} as const satisfies Partial<Record<zk.Capability, Needs>>

export function capabilitiesContract(driver: DriverUnderTest): void {
  test('the capabilities are those that are declared', async () => {
    await using client = await connected(driver)
    expect(client.capabilities).toEqual(driver.capabilities)
  })

  for (const [capability, needs] of Object.entries(NEEDS) as [keyof typeof NEEDS, Needs][]) {
    if (driver.capabilities[capability]) {
      test(`${capability} is there`, async () => {
        await using client = await connected(driver)
        await needs(client, namespace())
      })
    } else {
      test(`${capability} is refused, by its name, and nothing happens`, async () => {
        await using client = await connected(driver)
        const path = namespace()
        const error = await failureOf(needs(client, path))
        expect(error).toBeInstanceOf(UnsupportedCapability)
        expect(error).toMatchObject({ capability, code: 'JOBBOARD_UNSUPPORTED_CAPABILITY' })
        expect(String(error)).toContain(capability)
        expect(await client.exists(path)).toBeUndefined()
      })
    }
  }
}
