/** Where a test finds the ZooKeeper of this run, and a place in it that is its own. */
import { randomUUID } from 'node:crypto'
import { inject } from 'vitest'

/** `127.0.0.1:PORT`; empty where JOBBOARD_SKIP says to do without. */
export const zookeeperHosts: string = inject('zookeeperHosts')

/** A path that no other test uses. It is left behind when the test ends: to look at when it failed. */
export function namespace(name = 'test'): string {
  return `/${name}-${randomUUID().slice(0, 13)}`
}
