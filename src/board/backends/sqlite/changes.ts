/** Reports the changes of a board, which `store/feed.ts` reads, to its view and to the followers of jobs. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { BackendChanges, JobStatus } from '../../contract/index.ts'
import type { JobSteps } from './jobs.ts'
import type { SqliteBoard } from './life/open-board.ts'

export class SqliteChanges implements BackendChanges {
  readonly #board: SqliteBoard<{ readonly jobs: JobSteps }>

  constructor(board: SqliteBoard<{ readonly jobs: JobSteps }>) {
    this.#board = board
  }

  async subscribe(): Promise<void> {
    const { sink, feed } = this.#board.requireOpen()
    this.#board.requireSession('subscribing')
    this.#board.wanted.subscribed = true
    feed.begin()
    sink.gap()
  }

  async unsubscribe(): Promise<void> {
    this.#board.wanted.subscribed = false
  }

  async follow(ids: readonly string[]): Promise<JobStatus[]> {
    const { followed } = this.#board.wanted
    this.#board.requireSession('following jobs')
    this.#board.startWanting(followed, [])
    return this.#board.read(({ jobs }) =>
      ids.map((id) => {
        const status = jobs.status(id)
        if (typeof status === 'object') followed.add(id)
        return status
      }),
    )
  }

  async unfollow(ids: readonly string[]): Promise<void> {
    for (const id of ids) this.#board.wanted.followed.delete(id)
  }

  async barrier(): Promise<void> {
    // Callers that look again and again must not keep the process from its other work.
    await nextTurn()
    this.#board.requireSession('looking')
    this.#board.requireOpen().feed.poll()
  }
}
