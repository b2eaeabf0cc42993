/**
 * The path that all logbooks are under, with the ACL that everything below it gets. One round trip where it is there.
 */

import { RetryRounds } from '../../core/async/rounds.ts'
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
import { noLogbooksError } from '../request-checks.ts'
import type { Layout } from './layout.ts'
import { missingAsUndefined } from './reader.ts'
import { assertRoot, encodeRoot } from './records.ts'

export interface RootOptions extends WantedAcl, ClientCredentials {
  /** Whether it is made where it is missing; true by default. */
  readonly create?: boolean
  readonly log?: Logger
}

/**
 * @throws NotFound where it is missing and not to be made
 * @throws InvalidArgument where it has another ACL; AccessDenied where that is not shown to this client
 * @throws StorageFailure where something else is there
 */
export async function openRoot(
  zookeeper: ZooKeeper,
  { uri, layout, wanted }: { uri: string; layout: Layout; wanted: RootOptions },
): Promise<void> {
  const { path } = layout
  const rounds = new RetryRounds(`opening logbooks ${path}`)
  for (;;) {
    await rounds.next()
    const [there, access] = await Promise.all([
      missingAsUndefined(zookeeper.getData(path)),
      missingAsUndefined(zookeeper.getACL(path)),
    ])
    if (there && access) {
      assertRoot(there.data, path)
      const own = await findOwnEntries(access.acl, { given: wanted, client: zookeeper })
      zookeeper.acl = chooseAcl(access.acl, { wanted, path, own })
      warnOfStrangers(findStrangers(access.acl, wanted, own), { tenant: 'logbooks', path, log: wanted.log })
      return
    }
    if (wanted.create === false) throw noLogbooksError(uri, `${path} is not there`)
    zookeeper.acl = newTreeAcl(wanted)
    await zookeeper.mkdirp(layout.parentOf(path))
    await zookeeper.create(path, encodeRoot()).catch((error: unknown) => {
      // Another process was faster: what it made is read next.
      if (!(error instanceof NodeExists)) throw error
    })
  }
}

/** A look makes nothing, and so it does not matter to it that it is not shown the whole ACL. */
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
