/**
 * What is left of a claim that was taken away by hand while its session lives: the lock beside a posting that somebody
 * deleted, the permits of a lock that somebody deleted. They would keep others off until the session ends.
 *
 * A claim makes all of them in one transaction, whose number it keeps as its mark: what has another one is another's. What stands cannot be replaced but by hand, so that nothing comes between the look and the deletion.
 */
import { BadVersion, NoNode, type ZooKeeperDriver } from '../../../../zookeeper/index.ts'
import type { OrphanedClaim } from '../../../backend.ts'
import { toResourceWants } from '../../../model/resources.ts'
import type { Layout } from './layout.ts'

/** Two round trips, and a transaction for each that is there. */
export async function releaseOrphans(
  at: { readonly zookeeper: Pick<ZooKeeperDriver, 'exists' | 'delete'>; readonly layout: Layout },
  { id, posting, mark }: OrphanedClaim,
): Promise<void> {
  const { zookeeper, layout } = at
  const { exclusive, shared } = toResourceWants(posting)
  const paths = [
    ...exclusive.map((resource) => layout.exclusivePermit(resource)),
    ...shared.map((resource) => layout.sharedPermit(resource, id)),
    layout.lock(id),
  ]
  const free = async (path: string) => {
    const stat = await zookeeper.exists(path)
    if (!stat || stat.czxid !== mark) return
    await zookeeper.delete(path, { version: stat.version }).catch((error: unknown) => {
      if (!(error instanceof NoNode || error instanceof BadVersion)) throw error
    })
  }
  await Promise.all(paths.map(free))
}
