/** What tests see of a client from outside. */
import type { StateEvent, ZooKeeper } from '../../../src/zookeeper/index.ts'

/** Everything a client says about its state from now on. */
export function statesOf(client: ZooKeeper): StateEvent['state'][] {
  const states: StateEvent['state'][] = []
  client.on('state', ({ state }) => states.push(state))
  return states
}
