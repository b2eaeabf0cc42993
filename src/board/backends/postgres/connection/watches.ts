import type { PostgresBoard } from '../store/board.ts'
import { toBoardError } from '../store/errors.ts'

export interface WatchesOptions {
  /** Returns the channel of the notifications, by the schema and the number of the board. */
  readonly channelOf: (schema: string, board: number) => string
  /** Reports a notification, if it is about what is watched; without a payload, that notifications may have been lost. */
  readonly report: (payload?: string) => void
}

/**
 * The names of what is watched: kinds of records, or batches. While there are any, each connection of the session listens to their channel.
 */
export class Watches {
  readonly #board: PostgresBoard
  readonly #options: WatchesOptions
  readonly #names = new Set<string>()

  constructor(board: PostgresBoard, options: WatchesOptions) {
    this.#board = board
    this.#options = options
  }

  get channel(): string {
    return this.#options.channelOf(this.#board.schema, this.#board.number)
  }

  get isEmpty(): boolean {
    return this.#names.size === 0
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  /** Begins to watch. @throws NotConnected */
  async add(name: string): Promise<void> {
    this.#board.assertOpen()
    this.#names.add(name)
    try {
      await this.#board.requireConnection().query(`LISTEN ${this.channel}`, [])
    } catch (error) {
      this.#names.delete(name)
      throw toBoardError(`listening to ${this.#board.uri}`, error)
    }
  }

  /** Stops watching. Without a connection there is nothing to stop. */
  async remove(name: string): Promise<void> {
    this.#names.delete(name)
    if (!this.isEmpty || !this.#board.isOpen) return
    await this.#board.connection?.query(`UNLISTEN ${this.channel}`, []).catch(() => undefined)
  }

  /** Reports a notification; without a payload, that notifications may have been lost. */
  report(payload?: string): void {
    if (!this.isEmpty) this.#options.report(payload)
  }
}
