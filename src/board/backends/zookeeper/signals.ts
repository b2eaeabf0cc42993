/** Requests to cancel a job, and to pause the board. */
import { NodeExists, NoNode } from '../../../zookeeper/index.ts'
import type { BackendSignals, Cancellation, CancelRequest } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { cancelSteps } from './commit/transactions.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { touchedJob } from './parts/posting-parts.ts'
import { encodeCancellation } from './store/encoding.ts'
import { translateErrors } from './store/reader.ts'

export class ZooKeeperSignals implements BackendSignals {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  async cancel({ id, job, who, reason }: CancelRequest): Promise<void> {
    const { layout, committer } = this.#board
    const { kind } = this.#board.components
    const what = `cancellation of ${job}`
    await committer.commit<void>({
      what,
      steps: cancelSteps(layout, id, encodeCancellation({ who, reason }, kind.encoding)),
      touches: [touchedJob(id)],
      onCommitted: () => undefined,
      onRecovered: () => undefined,
      onRefused: (error, step) => {
        const subject = step === 'guard' ? undefined : step?.subject
        if (subject === 'cancel' && error instanceof NodeExists) return { answer: () => undefined }
        // Only a missing posting proves that the job has left the board: the reason may also be a missing folder.
        return subject === 'posting' && error instanceof NoNode ? refusalError(what, { why: 'gone' }, error) : error
      },
    })
  }

  async setPaused(paused: boolean): Promise<void> {
    await this.#board.components.gates.setPaused(paused)
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return translateErrors(`reading the cancel request of ${id}`, () => this.#board.components.reader.cancellation(id))
  }
}
