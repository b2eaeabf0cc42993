/** Requests that outlive the session of their caller: to cancel a job, and to pause the board. */
import type { BackendSignals, Cancellation, CancelRequest } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { RedisBoard } from './commit/board.ts'
import { decodeCancellation, encodeCancellation } from './store/encodings.ts'

export class RedisSignals implements BackendSignals {
  readonly #board: RedisBoard

  constructor(board: RedisBoard) {
    this.#board = board
  }

  async cancel(request: CancelRequest): Promise<void> {
    const { id, job } = request
    const bytes = encodeCancellation(request)
    const step = {
      arguments: ['cancel', id, bytes],
      what: `cancel of ${job}`,
      bytes: bytes.length,
      grows: true,
    } as const
    if (!(await this.#board.submit(step)).done) throw refusalError(job, { why: 'gone' })
  }

  async setPaused(paused: boolean): Promise<void> {
    const what = `${paused ? 'pause' : 'resume'} of ${this.#board.location.uri}`
    await this.#board.submit({ arguments: ['gate', paused], what, bytes: 10 })
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    const value = await this.#board.value('cancels', id)
    return value && decodeCancellation(value)
  }
}
