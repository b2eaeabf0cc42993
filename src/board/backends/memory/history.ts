/** The jobs that have ended last on a memory board. */
import type { BackendHistory } from '../../contract/index.ts'
import { decodeEndedJob, type EndedJob, encodeEndedJob, type HistoryEntry } from '../../model/ended-job.ts'
import { UnreadableValues } from '../unreadable-values.ts'
import type { MemoryBoard } from './store/board.ts'

export class HistorySteps {
  /** Encoded jobs by uuid, oldest first. */
  readonly #jobs = new Map<string, Uint8Array>()

  /** Adds a job in place of its earlier record, and removes the oldest jobs. */
  add({ job, keep }: HistoryEntry): void {
    this.#jobs.delete(job.uuid)
    if (keep > 0) this.#jobs.set(job.uuid, encodeEndedJob(job))
    for (const uuid of this.#jobs.keys()) {
      if (this.#jobs.size <= keep) return
      this.#jobs.delete(uuid)
    }
  }

  find(uuid: string): EndedJob | undefined {
    const bytes = this.#jobs.get(uuid)
    return bytes && decodeEndedJob(bytes)
  }

  /** Returns the newest jobs, newest first. */
  newest(limit: number, unreadable: UnreadableValues): EndedJob[] {
    const uuids = [...this.#jobs.keys()].slice(-limit).reverse()
    return uuids.flatMap((uuid) => this.find(uuid) ?? unreadable.leftOut('history', uuid))
  }
}

export class MemoryHistory implements BackendHistory {
  readonly #board: MemoryBoard<{ readonly history: HistorySteps }>
  readonly #unreadable = new UnreadableValues({ onError: (error) => this.#board.open?.sink.error(error) })

  constructor(board: MemoryBoard<{ readonly history: HistorySteps }>) {
    this.#board = board
  }

  async newest({ limit }: { readonly limit: number }): Promise<readonly EndedJob[]> {
    return this.#board.steps.history.newest(limit, this.#unreadable)
  }

  async find(uuids: readonly string[]): Promise<readonly (EndedJob | undefined)[]> {
    const { history } = this.#board.steps
    return uuids.map((uuid) => history.find(uuid))
  }
}
