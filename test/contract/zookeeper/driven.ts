/** What the parts of the contract share. */
import type { ClientState, StateEvent, ZooKeeperDriver } from '../../../src/zookeeper/index.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import type { DriverOptions, DriverUnderTest } from '../zookeeper.ts'

/** A connected client; `await using` closes it. */
export async function connected(
  driver: DriverUnderTest,
  options: Partial<DriverOptions> = {},
): Promise<ZooKeeperDriver> {
  const client = driver.make({ hosts: zookeeperHosts, ...options })
  await client.connect()
  return client
}

export function reaches(client: ZooKeeperDriver, state: ClientState): Promise<StateEvent> {
  return new Promise((resolve) => {
    const off = client.on('state', (event) => {
      if (event.state !== state) return
      off()
      resolve(event)
    })
  })
}

export function sessionOf(client: ZooKeeperDriver): bigint {
  const { session } = client
  if (!session) throw new Error('there is no session')
  return session.id
}

/** Every change of state so far and to come. */
export function statesOf(client: ZooKeeperDriver): ClientState[] {
  const states: ClientState[] = []
  client.on('state', ({ state }) => states.push(state))
  return states
}

export const READ_AHEAD_FRACTION: Uint8Array = new Uint8Array()
export const bytes = (text: string): Uint8Array => Buffer.from(text)
export const text = (data: Uint8Array | null): string | null => data && Buffer.from(data).toString()
