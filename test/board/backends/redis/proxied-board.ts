/** A board whose connection to Redis is in a test's hand, and what such tests share. */
import { expect } from 'vitest'
import type { JobBoard } from '../../../../src/board/index.ts'
import { NotConnected } from '../../../../src/core/errors.ts'
import { startProxy, type TcpProxy } from '../../../support/proxy.ts'
import type { RedisServer } from '../../../support/redis.ts'
import { refresh } from '../../jobs.ts'
import { type RedisPlace, redisPlace } from './places.ts'

/** A board behind a proxy, and one that sees the server directly. */
export class ProxiedRedisBoard implements AsyncDisposable {
  readonly place: RedisPlace
  readonly proxy: TcpProxy
  readonly board: JobBoard
  readonly other: JobBoard
  /** What the board failed at in the background. */
  readonly errors: Error[] = []

  private constructor(parts: { place: RedisPlace; proxy: TcpProxy; board: JobBoard; other: JobBoard }) {
    this.place = parts.place
    this.proxy = parts.proxy
    this.board = parts.board
    this.other = parts.other
    this.board.on('error', ({ error }) => this.errors.push(error))
  }

  static async set(server: RedisServer, { ttl = '30s' } = {}): Promise<ProxiedRedisBoard> {
    const place = await redisPlace(server)
    const proxy = await startProxy({ port: server.port })
    const [board, other] = await Promise.all([
      place.openAt(proxy.hosts, { who: 'board', parameters: `&ttl=${ttl}` }),
      place.open({ who: 'other' }),
    ])
    return new ProxiedRedisBoard({ place, proxy, board, other })
  }

  /** How many batches of the board Redis has done. */
  async #done(owner: string): Promise<number> {
    return Number(await this.place.observer.hget(this.place.key(`owner:${owner}`), 'number'))
  }

  /** Starts the operation, whose answer gets lost, and resolves when the server has done it. */
  async doneUnheard<T>(act: () => Promise<T>): Promise<{ readonly acting: Promise<T> }> {
    const owner = await this.place.ownerOf(this.board)
    const before = await this.#done(owner)
    this.proxy.mode = 'swallow-replies'
    const acting = act()
    acting.catch(() => undefined)
    while ((await this.#done(owner)) === before) await refresh(this.other)
    return { acting }
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
    if (!board.connected) await new Promise<void>((resolve) => board.on('state', () => resolve()))
  }
}
