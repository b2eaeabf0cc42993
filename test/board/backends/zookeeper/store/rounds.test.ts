import { expect, test } from 'vitest'
import { ServerClock } from '../../../../../src/board/backends/server-clock.ts'
import { TransactionCommitter } from '../../../../../src/board/backends/zookeeper/commit/committer.ts'
import { ZooKeeperEntities } from '../../../../../src/board/backends/zookeeper/entities.ts'
import { BoardHandle } from '../../../../../src/board/backends/zookeeper/parts/board-handle.ts'
import type { ZooKeeperComponents } from '../../../../../src/board/backends/zookeeper/parts/components.ts'
import { ownBoard } from '../../../../../src/board/backends/zookeeper/store/board-kind.ts'
import { openBoardPath } from '../../../../../src/board/backends/zookeeper/store/board-path.ts'
import { BoardGate } from '../../../../../src/board/backends/zookeeper/store/gate.ts'
import { ZooKeeperLayout } from '../../../../../src/board/backends/zookeeper/store/layout.ts'
import { NotConnected } from '../../../../../src/core/errors.ts'
import { NodeExists, NoNode, type ZooKeeper } from '../../../../../src/zookeeper/index.ts'

/** Servers that say of every znode that it is there when it is made, and that it is not when it is read. */
function lyingBackend(): { readonly zookeeper: ZooKeeper; asked(): number } {
  let asked = 0
  const refuse = (error: Error) => async () => {
    asked += 1
    throw error
  }
  const [there, missing] = [NodeExists, NoNode].map((type) => new type('it lies', { zkCode: 0 }))
  if (!there || !missing) throw new Error('no errors')
  const driver: Partial<ZooKeeper> = {
    session: undefined,
    create: refuse(there),
    multi: refuse(there),
    mkdirp: async () => undefined,
    getData: refuse(missing),
    getACL: refuse(missing),
    exists: refuse(missing),
  }
  return { zookeeper: driver as ZooKeeper, asked: () => asked }
}

const layout = new ZooKeeperLayout('/jobs')
const entity = { kind: 'worker', name: 'one', instance: 'i', metadata: {} }

function handleOf(zookeeper: ZooKeeper): BoardHandle {
  const clock = new ServerClock()
  const committer = new TransactionCommitter(zookeeper, layout, { timeoutMs: 0, clock: () => undefined })
  const board = new BoardHandle({ uri: 'zookeeper:', zookeeper, layout, committer, clock })
  board.opened({ kind: ownBoard } as ZooKeeperComponents)
  return board
}

test.concurrent.each([
  [
    'the gate',
    (zookeeper: ZooKeeper) =>
      new BoardGate({ zookeeper, layout, onGate: () => undefined, onError: () => undefined }).read(),
  ],
  ['an entity', (zookeeper: ZooKeeper) => new ZooKeeperEntities(handleOf(zookeeper)).register(entity)],
  ['a board', (zookeeper: ZooKeeper) => openBoardPath(zookeeper, layout)],
])('servers that lie about %s are not asked for ever', async (_, ask) => {
  const { zookeeper, asked } = lyingBackend()
  const failure: unknown = await ask(zookeeper).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(NotConnected)
  expect(String(failure)).toContain('rounds the servers answered alternately')
  expect(asked()).toBeLessThan(100)
})
