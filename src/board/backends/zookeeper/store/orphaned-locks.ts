/**
 * Releases orphaned claims: the lock of a posting that was deleted by hand, or the permits of a lock that was deleted
 * by hand, while the session lives. They would block other owners until the session ends.
 *
 * A claim creates all of them in one transaction, whose zxid it keeps as its mark: a znode with another zxid belongs to
 * another claim. While such a znode exists it cannot be replaced except by hand, so nothing comes between the read and
 * the deletion.
 */
import { BadVersion, NoNode, type ZooKeeperDriver } from '../../../../zookeeper/index.ts'
import type { OrphanedClaim } from '../../../backend.ts'
import { toResourceWants } from '../../../model/resources.ts'
import type { Layout } from './layout.ts'

/** Deletes the znodes of an orphaned claim: two round trips, and a transaction for each znode that exists. */
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
