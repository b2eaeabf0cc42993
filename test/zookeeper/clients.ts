/** What the tests of the client share. */
import { type StateEvent, ZooKeeper, type ZooKeeperOptions } from '../../src/zookeeper/index.ts'
import { zookeeperHosts } from '../support/namespace.ts'

/** A connected client; `await using` closes it. */
export async function connected(options: Partial<ZooKeeperOptions> = {}): Promise<ZooKeeper> {
  const zookeeper = new ZooKeeper({ hosts: zookeeperHosts, ...options })
  await zookeeper.connect()
  return zookeeper
}

/** The next change into that state. */
export function reaches(zookeeper: ZooKeeper, state: StateEvent['state']): Promise<StateEvent> {
  return new Promise((resolve) => {
    const off = zookeeper.on('state', (event) => {
      if (event.state !== state) return
      off()
      resolve(event)
    })
  })
}

/** Returns the list of states, to which every change is added from now on. */
export function statesOf(zookeeper: ZooKeeper): StateEvent['state'][] {
  const states: StateEvent['state'][] = []
  zookeeper.on('state', ({ state }) => states.push(state))
  return states
}

/** The session's id, of a client that has one. */
export function sessionOf(zookeeper: ZooKeeper): bigint {
  const { session } = zookeeper
  if (!session) throw new Error('there is no session')
  return session.id
}

/** The error a promise rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it was expected to fail')
}

export const portOf = (hosts: string): number => Number(hosts.split(':')[1])
export const text = (data: Uint8Array | null): string | null => data && Buffer.from(data).toString()
export const bytes = (text: string): Uint8Array => Buffer.from(text)
export const NO_DATA: Uint8Array = new Uint8Array()
