/** Requests to cancel jobs, and to pause the board: see `functions/requests.sql`. */
import { decodeText, encodeText } from '../../../postgres/index.ts'
import type { BackendSignals, Cancellation, CancelRequest } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { BoardWriter } from './commit/writer.ts'
import type { PostgresBoard } from './store/board.ts'
import { jobNumber, jobNumbers } from './store/rows.ts'

export class PostgresSignals implements BackendSignals {
  readonly #board: PostgresBoard
  readonly #writer: BoardWriter

  constructor(board: PostgresBoard, writer: BoardWriter) {
    this.#board = board
    this.#writer = writer
  }

  async cancel({ id, job, who, reason }: CancelRequest): Promise<void> {
    const what = `cancellation of ${job}`
    const answer = await this.#writer.call(what, 'cancel', [jobNumber(id), encodeText(who), encodeText(reason)])
    if (answer === 'gone') throw refusalError(what, { why: 'gone' })
  }

  async setPaused(paused: boolean): Promise<void> {
    const what = paused ? 'pause of the board' : 'resumption of the board'
    await this.#writer.call(what, 'set_gate', [paused])
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    const text =
      'SELECT cancelled_by, cancel_reason FROM @.jobs WHERE board = $1 AND id = $2 AND cancelled_by IS NOT NULL'
    const [row] = await this.#board.ask(`looking for who cancelled ${id}`, text, jobNumbers([id]))
    return row && { who: decodeText(String(row['cancelled_by'])), reason: decodeText(String(row['cancel_reason'])) }
  }
}
