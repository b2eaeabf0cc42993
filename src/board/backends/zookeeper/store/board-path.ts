/** Makes the board where it is missing, takes over what TaskFlow has made, and checks that what is there is a board. */

import { RetryRounds } from '../../../../core/async/rounds.ts'
import type { Encoding } from '../../../../core/codec.ts'
import { AccessDenied, IncompatibleVersion, NotFound, UnsupportedCapability } from '../../../../core/errors.ts'
import type { Logger } from '../../../../core/log.ts'
import {
  type Acl,
  BadVersion,
  type ClientCredentials,
  existingTreeAcl,
  findOwnEntries,
  findStrangers,
  isOpenToAll,
  isSameAcl,
  NoAuth,
  NodeExists,
  NoNode,
  newTreeAcl,
  op,
  type Stat,
  type WantedAcl,
  warnOfStrangers,
  type ZooKeeperDriver,
} from '../../../../zookeeper/index.ts'
import type { Layout } from './layout.ts'
import { missingAsUndefined } from './reader.ts'
import {
  type BoardRecord,
  decodeBoardRecord,
  encodeBoardRecord,
  encodeGate,
  NEW_BOARD,
  OPEN_GATE,
  SHARED_BOARD,
  UNFINISHED_BOARD,
} from './records.ts'

/** What is asked for: anything that is there will do without it, and msgpack is what a new board gets. */
export interface BoardPathOptions extends WantedAcl, ClientCredentials {
  readonly encoding?: Encoding
  /** Whether the board is made where it is missing; true by default. */
  readonly create?: boolean
  readonly log?: Logger
}

/**
 * The record of the board at this path. One round trip where the board is there; the first process makes it, with its
 * folders, in one multi. A path without a record is TaskFlow's: it becomes a shared board, and stays one. Without multi
 * the record says that the board is not finished until all of it is there; whoever comes first finishes it. What the client
 * makes from then on has the ACL of the path.
 *
 * @throws NotFound where there is none and none is to be made
 * @throws InvalidArgument where the board has another ACL; AccessDenied where it is not for this client;
 * UnsupportedCapability where the client cannot keep to it
 * @throws IncompatibleVersion when the path holds something else, a newer release's board, or one of another encoding
 */
export async function openBoardPath(
  zookeeper: ZooKeeperDriver,
  layout: Layout,
  wanted: BoardPathOptions = {},
): Promise<BoardRecord> {
  const rounds = new RetryRounds(`opening board ${layout.path}`)
  while (true) {
    await rounds.next()
    const [there, access] = await Promise.all([
      missingAsUndefined(zookeeper.getData(layout.path)),
      missingAsUndefined(zookeeper.getACL(layout.path)),
    ])
    if (!there || !access) {
      if (wanted.create === false) throw boardNotFoundError(layout)
      createBoardPath(zookeeper, newTreeAcl(wanted), layout)
      await createBoard(zookeeper, layout, wanted.encoding === 'json' ? SHARED_BOARD : NEW_BOARD)
      continue
    }
    const own = await findOwnEntries(access.acl, { given: wanted, client: zookeeper })
    const acl = existingTreeAcl(access.acl, wanted, { tenant: 'board', path: layout.path, own })
    createBoardPath(zookeeper, acl, layout)
    if (!there.data || there.data.length === 0) {
      // Another process was faster, or the path is gone again: it is looked at anew.
      await ignoreConcurrentCreate(shareBoard(zookeeper, layout, { ...wanted, stat: there.stat }))
    } else {
      const record = checkWanted(decodeBoardRecord(there.data, layout.path), layout, wanted)
      if (!record.unfinished) {
        const isGuarded = wanted.identified || wanted.acl !== undefined || wanted.tls?.cert !== undefined
        if (isGuarded && !isOpenToAll(acl)) await assertOwnSessions(zookeeper, layout, acl)
        warnOfStrangers(findStrangers(acl, wanted, own), { tenant: 'board', path: layout.path, log: wanted.log })
        return record
      }
      const { unfinished: _, ...finished } = record
      await ignoreConcurrentCreate(finishBoard(zookeeper, layout, { record: finished, version: there.stat.version }))
    }
  }
}

/** @throws UnsupportedCapability where the client makes every znode for everybody, and the board is not for everybody */
function createBoardPath(zookeeper: ZooKeeperDriver, acl: readonly Acl[], { path }: Layout): void {
  if (zookeeper.capabilities.aclOnCreate) {
    zookeeper.acl = acl
    return
  }
  if (isOpenToAll(acl)) return
  const message = `board ${path} has an ACL, and the C client makes every znode for everybody; open it without client=native`
  throw new UnsupportedCapability(message, { capability: 'aclOnCreate' })
}

/**
 * The folder of the markers lies beside the board, where others may be allowed to make znodes. Whoever makes it first could
 * keep the board from being opened, or replace the markers that say what became of a transaction.
 *
 * @throws AccessDenied
 */
async function assertOwnSessions(zookeeper: ZooKeeperDriver, layout: Layout, acl: readonly Acl[]): Promise<void> {
  const path = layout.sessionsFolder
  const found = await missingAsUndefined(zookeeper.getACL(path)).catch((error: unknown) => {
    if (error instanceof NoAuth) return { acl: [] }
    throw error
  })
  if (!found || isSameAcl(found.acl, acl)) return
  throw new AccessDenied(
    `opening board ${layout.path}: ${path} beside it has another ACL than the board, so another may have made it; give it the ` +
      "board's ACL (setACL), or delete it while nobody has the board open",
  )
}

async function ignoreConcurrentCreate(making: Promise<void>): Promise<void> {
  await making.catch((error: unknown) => {
    if (!(error instanceof BadVersion || error instanceof NoNode)) throw error
  })
}

function boardNotFoundError({ path }: Layout): NotFound {
  return new NotFound(`there is no board at ${path}; check the URI, or post a job to make one`)
}

function checkWanted(record: BoardRecord, layout: Layout, wanted: BoardPathOptions): BoardRecord {
  if (wanted.encoding === undefined || wanted.encoding === record.encoding) return record
  const kind = record.shared ? 'shared with TaskFlow' : 'not shared with TaskFlow'
  throw new IncompatibleVersion(
    `board ${layout.path} is ${kind}: its encoding is ${record.encoding}, not ${wanted.encoding}; ` +
      'leave the encoding out, or choose another path',
  )
}

async function createBoard(zookeeper: ZooKeeperDriver, layout: Layout, record: BoardRecord): Promise<void> {
  const parent = layout.path.slice(0, layout.path.lastIndexOf('/'))
  // Also where nothing is above the board but a chroot: that may be missing too.
  await zookeeper.mkdirp(parent === '' ? '/' : parent)
  if (!zookeeper.capabilities.multi) {
    const unfinished = encodeBoardRecord({ ...record, ...UNFINISHED_BOARD })
    return ignoreExisting(zookeeper.create(layout.path, unfinished))
  }
  try {
    await zookeeper.multi([
      op.create(layout.path, encodeBoardRecord(record)),
      ...layout.folders.map((folder) => op.create(folder, null)),
      op.create(layout.gate, encodeGate(OPEN_GATE)),
    ])
  } catch (error) {
    // Another process was faster; what it made is read next.
    if (!(error instanceof NodeExists)) throw error
  }
}

/** TaskFlow passes over the folders, whose names do not begin as its jobs' do, and never looks at the data of the path. */
async function shareBoard(
  zookeeper: ZooKeeperDriver,
  layout: Layout,
  { stat, encoding, create }: BoardPathOptions & { readonly stat: Stat },
): Promise<void> {
  const { path } = layout
  if (encoding === 'msgpack') {
    throw new IncompatibleVersion(
      `${path} is there without a board's record, so it is TaskFlow's, whose encoding is json; choose a path that is free`,
    )
  }
  const { names } = await zookeeper.getChildren(path)
  // Whoever only wants to look makes no board of what may be anybody's.
  if (names.length === 0 && create === false) throw boardNotFoundError(layout)
  const stranger = names.find((name) => !layout.isKnownChild(name))
  if (stranger !== undefined) {
    throw new IncompatibleVersion(
      `${path} is there and is no board, for it holds ${stranger}; choose a path that is free or a board`,
    )
  }
  await finishBoard(zookeeper, layout, { record: SHARED_BOARD, version: stat.version })
}

/** Folders first, the record last: who finds a whole record finds a whole board, whoever dies in between. */
async function finishBoard(
  zookeeper: ZooKeeperDriver,
  layout: Layout,
  { record, version }: { readonly record: BoardRecord; readonly version: number },
): Promise<void> {
  for (const folder of layout.folders) await ignoreExisting(zookeeper.create(folder))
  await ignoreExisting(zookeeper.create(layout.gate, encodeGate(OPEN_GATE)))
  await zookeeper.setData(layout.path, encodeBoardRecord(record), { version })
}

async function ignoreExisting(creating: Promise<unknown>): Promise<void> {
  await creating.catch((error: unknown) => {
    if (!(error instanceof NodeExists)) throw error
  })
}
