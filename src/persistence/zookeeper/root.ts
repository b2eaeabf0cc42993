/**
 * Opens the root of all logbooks, and determines the ACL of everything below it. Costs one round trip where it exists.
 */

import { RetryRounds } from '../../core/async/retry.ts'
import { AccessDenied } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import {
  ACL,
  type Acl,
  type ClientCredentials,
  existingTreeAcl,
  findOwnEntries,
  findStrangers,
  NodeExists,
  newTreeAcl,
  type WantedAcl,
  warnOfStrangers,
  type ZooKeeper,
} from '../../zookeeper/index.ts'
import { noLogbooksError } from '../requests.ts'
import type { LogbookLayout } from './layout.ts'
import { missingAsUndefined } from './reader.ts'
import { assertRoot, encodeRoot } from './records.ts'

export interface RootOptions extends WantedAcl, ClientCredentials {
  /** Whether it is created where it is missing; true by default. */
  readonly create?: boolean
  readonly log?: Logger
}

/**
 * Opens the root, or creates it.
 *
 * @throws NotFound where it is missing and must not be created
 * @throws InvalidArgument where it has another ACL; AccessDenied where the client may not see its ACL
 * @throws StorageFailure where it is a znode of another program
 */
export async function openRoot(
  zookeeper: ZooKeeper,
  { uri, layout, wanted }: { uri: string; layout: LogbookLayout; wanted: RootOptions },
): Promise<void> {
  const { path } = layout
  const rounds = new RetryRounds(`opening logbooks ${path}`)
  for (;;) {
    await rounds.next()
    const [node, access] = await Promise.all([
      missingAsUndefined(zookeeper.getData(path)),
      missingAsUndefined(zookeeper.getACL(path)),
    ])
    if (node && access) {
      assertRoot(node.data, path)
      const own = await findOwnEntries(access.acl, { credentials: wanted, client: zookeeper })
      zookeeper.acl = chooseAcl(access.acl, { wanted, path, own })
      warnOfStrangers(findStrangers(access.acl, wanted, own), { tenant: 'logbooks', path, log: wanted.log })
      return
    }
    if (wanted.create === false) throw noLogbooksError(uri, `${path} does not exist`)
    zookeeper.acl = newTreeAcl(wanted)
    await zookeeper.mkdirp(layout.parentOf(path))
    await zookeeper.create(path, encodeRoot()).catch((error: unknown) => {
      // Another process was faster: the next round reads its znode.
      if (!(error instanceof NodeExists)) throw error
    })
  }
}

/** Returns the ACL. A read-only use creates nothing, so it does not need to see the whole ACL. */
function chooseAcl(
  found: readonly Acl[],
  { wanted, path, own }: { wanted: RootOptions; path: string; own: ReadonlySet<Acl> },
): readonly Acl[] {
  try {
    return existingTreeAcl(found, wanted, { tenant: 'logbooks', path, own })
  } catch (error) {
    if (wanted.create === false && error instanceof AccessDenied) return ACL.creatorAll
    throw error
  }
}
