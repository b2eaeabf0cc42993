/** Reads the jobs that have ended. */
import type { BackendHistory } from '../../contract/index.ts'
import { decodeEndedJob, type EndedJob } from '../../model/ended-job.ts'
import { UnreadableValues } from '../unreadable-values.ts'
import type { RedisBoard } from './commit/board.ts'
import { toList, toTexts } from './store/replies.ts'

/** The number of records of the history in one answer: each may have results of 64 KiB. */
const PAGE_SIZE = 100

export class RedisHistory implements BackendHistory {
  readonly #board: RedisBoard
  readonly #unreadable: UnreadableValues

  constructor(board: RedisBoard) {
    this.#board = board
    this.#unreadable = new UnreadableValues({ onError: (error) => board.reportError(error) })
  }

  async newest({ limit }: { readonly limit: number }): Promise<readonly EndedJob[]> {
    const uuids = toTexts(await this.#board.command('zrevrange', 'ended', '0', String(limit - 1)))
    const values = await this.#values(uuids)
    return values.flatMap((value, index) =>
      value instanceof Uint8Array
        ? (decodeEndedJob(value) ?? this.#unreadable.leftOut('history', uuids[index] ?? ''))
        : [],
    )
  }

  async find(uuids: readonly string[]): Promise<readonly (EndedJob | undefined)[]> {
    const values = await this.#values(uuids)
    return values.map((value) => (value instanceof Uint8Array ? decodeEndedJob(value) : undefined))
  }

  async #values(uuids: readonly string[]): Promise<unknown[]> {
    const found: unknown[] = []
    for (let from = 0; from < uuids.length; from += PAGE_SIZE)
      found.push(...toList(await this.#board.command('hmget', 'history', ...uuids.slice(from, from + PAGE_SIZE))))
    return found
  }
}
