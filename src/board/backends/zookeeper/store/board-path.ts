/**
 * Creates the board if it is missing, adopts a path that TaskFlow created, and checks that an existing path holds a
 * board.
 */

import { RetryRounds } from '../../../../core/async/retry.ts'
import type { Encoding } from '../../../../core/codec.ts'
import { AccessDenied, IncompatibleVersion, NotFound } from '../../../../core/errors.ts'
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
  type ZooKeeper,
} from '../../../../zookeeper/index.ts'
import {
  type BoardRecord,
  decodeBoardRecord,
  encodeBoardRecord,
  encodeGate,
  NEW_BOARD,
  OPEN_GATE,
  SHARED_BOARD,
} from './encoding.ts'
import type { ZooKeeperLayout } from './layout.ts'
import { missingAsUndefined } from './reader.ts'

/** The requested settings. Without them any existing board is accepted, and a new board is created with msgpack. */
export interface BoardPathOptions extends WantedAcl, ClientCredentials {
  readonly encoding?: Encoding
  /** Whether a missing board is created; true by default. */
  readonly create?: boolean
  readonly log?: Logger
}

/** The part of the client that opening a board needs. */
export type BoardPathClient = Pick<
  ZooKeeper,
  'acl' | 'create' | 'getACL' | 'getChildren' | 'getData' | 'mkdirp' | 'multi' | 'setData' | 'whoAmI'
>

/** The board at a path. */
export interface OpenedPath {
  readonly record: BoardRecord
  /** The number of postings and locks created and deleted so far, as a 32-bit number. */
  readonly created: number
}

/**
 * Returns the record of the board at this path, in one round trip if the board exists. The first process creates the
 * board with its folders, in one multi. A path without a record is TaskFlow's: it becomes a shared board, and stays
 * one. From then on the client creates znodes with the ACL of the path.
 *
 * @throws NotFound if there is no board and none may be created
 * @throws InvalidArgument if the board has another ACL; AccessDenied if this client may not use it
 * @throws IncompatibleVersion when the path holds something else, the board of a newer release, or a board of another
 * encoding
 */
export async function openBoardPath(
  zookeeper: BoardPathClient,
  layout: ZooKeeperLayout,
  wanted: BoardPathOptions = {},
): Promise<OpenedPath> {
  const rounds = new RetryRounds(`opening board ${layout.path}`)
  while (true) {
    await rounds.next()
    const [node, access] = await Promise.all([
      missingAsUndefined(zookeeper.getData(layout.path)),
      missingAsUndefined(zookeeper.getACL(layout.path)),
    ])
    if (!node || !access) {
      if (wanted.create === false) throw boardNotFoundError(layout)
      zookeeper.acl = newTreeAcl(wanted)
      await createBoard(zookeeper, layout, wanted.encoding === 'json' ? SHARED_BOARD : NEW_BOARD)
      continue
    }
    const own = await findOwnEntries(access.acl, { credentials: wanted, client: zookeeper })
    const acl = existingTreeAcl(access.acl, wanted, { tenant: 'board', path: layout.path, own })
    zookeeper.acl = acl
    if (!node.data || node.data.length === 0) {
      // Another process was faster, or the path was deleted again: the path is read again.
      await ignoreConcurrentCreate(shareBoard(zookeeper, layout, { ...wanted, stat: node.stat }))
    } else {
      const record = checkWanted(decodeBoardRecord(node.data, layout.path), layout, wanted)
      const isGuarded = wanted.identified || wanted.acl !== undefined || wanted.tls?.cert !== undefined
      if (isGuarded && !isOpenToAll(acl)) await assertOwnSessions(zookeeper, layout, acl)
      warnOfStrangers(findStrangers(acl, wanted, own), { tenant: 'board', path: layout.path, log: wanted.log })
      return { record, created: node.stat.cversion }
    }
  }
}

/**
 * Checks that the folder of the markers has the board's ACL. The folder is outside the board, where other clients may
 * be allowed to create znodes. A client that creates it first could prevent the board from being opened, or replace the
 * markers from which the outcomes of transactions are determined.
 *
 * @throws AccessDenied if it has another ACL
 */
async function assertOwnSessions(
  zookeeper: BoardPathClient,
  layout: ZooKeeperLayout,
  acl: readonly Acl[],
): Promise<void> {
  const path = layout.sessionsFolder
  const found = await missingAsUndefined(zookeeper.getACL(path)).catch((error: unknown) => {
    if (error instanceof NoAuth) return { acl: [] }
    throw error
  })
  if (!found || isSameAcl(found.acl, acl)) return
  throw new AccessDenied(
    `opening board ${layout.path}: its folder ${path} has another ACL than the board, so another client may have created it; give it the ` +
      "board's ACL (setACL), or delete it while no process has the board open",
  )
}

async function ignoreConcurrentCreate(making: Promise<void>): Promise<void> {
  await making.catch((error: unknown) => {
    if (!(error instanceof BadVersion || error instanceof NoNode)) throw error
  })
}

function boardNotFoundError({ path }: ZooKeeperLayout): NotFound {
  return new NotFound(`there is no board at ${path}; check the URI, or post a job to make one`)
}

function checkWanted(record: BoardRecord, layout: ZooKeeperLayout, wanted: BoardPathOptions): BoardRecord {
  if (wanted.encoding === undefined || wanted.encoding === record.encoding) return record
  const kind = record.shared ? 'shared with TaskFlow' : 'not shared with TaskFlow'
  throw new IncompatibleVersion(
    `board ${layout.path} is ${kind}: its encoding is ${record.encoding}, not ${wanted.encoding}; ` +
      'omit the encoding, or choose another path',
  )
}

async function createBoard(zookeeper: BoardPathClient, layout: ZooKeeperLayout, record: BoardRecord): Promise<void> {
  const parent = layout.path.slice(0, layout.path.lastIndexOf('/'))
  // Also needed if only a chroot is above the board: the chroot may be missing too.
  await zookeeper.mkdirp(parent === '' ? '/' : parent)
  try {
    await zookeeper.multi([
      op.create(layout.path, encodeBoardRecord(record)),
      ...layout.folders.map((folder) => op.create(folder, null)),
      op.create(layout.gate, encodeGate(OPEN_GATE)),
    ])
  } catch (error) {
    // Another process was faster; its board is read next.
    if (!(error instanceof NodeExists)) throw error
  }
}

/**
 * Makes a path of TaskFlow a shared board. TaskFlow ignores the folders, whose names do not begin like the names of its
 * jobs, and never reads the data of the path.
 */
async function shareBoard(
  zookeeper: BoardPathClient,
  layout: ZooKeeperLayout,
  { stat, encoding, create }: BoardPathOptions & { readonly stat: Stat },
): Promise<void> {
  const { path } = layout
  if (encoding === 'msgpack') {
    throw new IncompatibleVersion(
      `${path} exists without a board record, so it belongs to TaskFlow, whose encoding is json; choose a path that does not exist`,
    )
  }
  const { names } = await zookeeper.getChildren(path)
  // An open without `create` does not turn an empty path, which may belong to anything, into a board.
  if (names.length === 0 && create === false) throw boardNotFoundError(layout)
  const unknown = names.find((name) => !layout.isKnownChild(name))
  if (unknown !== undefined) {
    throw new IncompatibleVersion(
      `${path} exists and is not a board: it holds ${unknown}; choose a path that does not exist, or the path of a board`,
    )
  }
  // The folders first, and the record last: a client that finds a record finds the whole board, even if this process ends in between.
  for (const folder of layout.folders) await ignoreExisting(zookeeper.create(folder))
  await ignoreExisting(zookeeper.create(layout.gate, encodeGate(OPEN_GATE)))
  await zookeeper.setData(path, encodeBoardRecord(SHARED_BOARD), { version: stat.version })
}

async function ignoreExisting(creating: Promise<unknown>): Promise<void> {
  await creating.catch((error: unknown) => {
    if (!(error instanceof NodeExists)) throw error
  })
}
