/**
 * The path that all logbooks are under, with the ACL that everything below it gets. One round trip where it is there.
 */

import { AccessDenied } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { Rounds } from '../../core/rounds.ts'
import {
  ACL,
  type Acl,
  aclOfNewTree,
  aclOfTree,
  type GivenIdentities,
  NodeExists,
  ownEntries,
  strangersIn,
  type WantedAcl,
  warnOfStrangers,
  type ZooKeeper,
} from '../../zookeeper/index.ts'
import { noLogbooks } from '../requests.ts'
import type { Layout } from './layout.ts'
import { unlessGone } from './reading.ts'
import { assertRoot, rootBytes } from './records.ts'

export interface WantedRoot extends WantedAcl, GivenIdentities {
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
  { uri, layout, wanted }: { uri: string; layout: Layout; wanted: WantedRoot },
): Promise<void> {
  const { path } = layout
  const rounds = new Rounds(`opening logbooks ${path}`)
  for (;;) {
    await rounds.next()
    const [there, access] = await Promise.all([unlessGone(zookeeper.getData(path)), unlessGone(zookeeper.getACL(path))])
    if (there && access) {
      assertRoot(there.data, path)
      const own = await ownEntries(access.acl, { given: wanted, client: zookeeper })
      zookeeper.acl = aclBelow(access.acl, { wanted, path, own })
      warnOfStrangers(strangersIn(access.acl, wanted, own), { tenant: 'logbooks', path, log: wanted.log })
      return
    }
    if (wanted.create === false) throw noLogbooks(uri, `${path} is not there`)
    zookeeper.acl = aclOfNewTree(wanted)
    await zookeeper.mkdirp(layout.above(path))
    await zookeeper.create(path, rootBytes()).catch((error: unknown) => {
      // Another process was faster: what it made is read next.
      if (!(error instanceof NodeExists)) throw error
    })
  }
}

/** A look makes nothing, and so it does not matter to it that it is not shown the whole ACL. */
function aclBelow(
  found: readonly Acl[],
  { wanted, path, own }: { wanted: WantedRoot; path: string; own: ReadonlySet<Acl> },
): readonly Acl[] {
  try {
    return aclOfTree(found, wanted, { tenant: 'logbooks', path, own })
  } catch (error) {
    if (wanted.create === false && error instanceof AccessDenied) return ACL.creatorAll
    throw error
  }
}
