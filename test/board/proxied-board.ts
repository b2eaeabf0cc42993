/** A board whose connection is in a test's hand, and what such tests share. */
import { expect } from 'vitest'
import type { JobBoard } from '../../src/board/index.ts'
import { NotConnected } from '../../src/core/errors.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { startProxy, type TcpProxy } from '../support/proxy.ts'
import { portOf } from '../zookeeper/clients.ts'
import { type ZooKeeperPlace, zookeeperPlace } from './boards.ts'
import { refresh } from './jobs.ts'

/** A board behind a proxy, and one that sees the server directly. */
export class ProxiedBoard implements AsyncDisposable {
  readonly place: ZooKeeperPlace
  readonly proxy: TcpProxy
  readonly board: JobBoard
  readonly other: JobBoard

  constructor(parts: { place: ZooKeeperPlace; proxy: TcpProxy; board: JobBoard; other: JobBoard }) {
    this.place = parts.place
    this.proxy = parts.proxy
    this.board = parts.board
    this.other = parts.other
  }

  static async set({ sessionTimeout = '30s' } = {}): Promise<ProxiedBoard> {
    const place = await zookeeperPlace()
    const proxy = await startProxy({ port: portOf(zookeeperHosts) })
    const [board, other] = await Promise.all([
      place.openAt(proxy.hosts, { who: 'board', parameters: `?sessionTimeout=${sessionTimeout}` }),
      place.open({ who: 'other' }),
    ])
    // The first transaction of a session makes its marker: that is not what these tests are about.
    const first = await board.post('flow', {}, { name: 'first' })
    await (await board.claim(first)).consume()
    await refresh(other)
    return new ProxiedBoard({ place, proxy, board, other })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.board.close(), this.other.close()])
    await this.proxy.close()
    await this.place[Symbol.asyncDispose]()
  }
}

/** Resolves on a connection that holds: one that was cut may not know it yet. */
export async function waitForStableConnection(board: JobBoard): Promise<void> {
  while (true) {
    const failure = await refresh(board).catch((error: unknown) => error)
    if (failure === undefined) return
    expect(failure).toBeInstanceOf(NotConnected)
  }
}

/** After how many more requests a connection breaks again. */
export const CUTS = [1, 2, 3, 4, 5, 6, 7, 8]
