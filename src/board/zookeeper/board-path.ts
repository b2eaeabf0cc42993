/** Makes the board where it is missing, and checks that what is there is one. */
import { NodeExists, NoNode, op, type ZooKeeper } from '../../zookeeper/index.ts'
import type { Layout } from './layout.ts'
import { type BoardRecord, decodeBoardRecord, encodeBoardRecord, encodeGate, NEW_BOARD } from './records.ts'

/**
 * The record of the board at this path. One round trip where the board is there; the first process makes it, with its
 * folders, in one multi.
 *
 * @throws IncompatibleVersion when the path holds something else, or a newer release's board
 */
export async function openBoardPath(zookeeper: ZooKeeper, layout: Layout): Promise<BoardRecord> {
  while (true) {
    try {
      const { data } = await zookeeper.getData(layout.path)
      return decodeBoardRecord(data, layout.path)
    } catch (error) {
      if (!(error instanceof NoNode)) throw error
    }
    await makeBoard(zookeeper, layout)
  }
}

async function makeBoard(zookeeper: ZooKeeper, layout: Layout): Promise<void> {
  const parent = layout.path.slice(0, layout.path.lastIndexOf('/'))
  // Also where nothing is above the board but a chroot: that may be missing too.
  await zookeeper.mkdirp(parent === '' ? '/' : parent)
  try {
    await zookeeper.multi([
      op.create(layout.path, encodeBoardRecord(NEW_BOARD)),
      op.create(layout.trashFolder, null),
      op.create(layout.entitiesFolder, null),
      op.create(layout.permitsFolder, null),
      op.create(layout.keysFolder, null),
      op.create(layout.cancelFolder, null),
      op.create(layout.gate, encodeGate({ paused: false })),
    ])
  } catch (error) {
    // Another process was faster; what it made is read next.
    if (!(error instanceof NodeExists)) throw error
  }
}
