/** The jobs that have ended last on a memory board. */
import { decodeEndedJob, type EndedJob, encodeEndedJob, type HistoryEntry } from '../../model/ended-job.ts'
import type { UnreadableValues } from '../unreadable-values.ts'

export class MemoryHistory {
  /** Encoded jobs by uuid, oldest first. */
  readonly #jobs = new Map<string, Uint8Array>()

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
