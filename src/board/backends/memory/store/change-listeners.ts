/** The boards of a space, and what they are notified of. */
import type { BackendSink, BoardChange } from '../../../contract/index.ts'
import type { RecordName } from '../../../model/record.ts'

/** A receiver of some kinds of changes. */
export type ChangeListener = Partial<Pick<BackendSink, 'changes' | 'paused' | 'batchChanged'>> & {
  /** Called with the names of the records that one step has changed. */
  records?(names: readonly RecordName[]): void
}

export class ChangeListeners {
  readonly #listeners = new Set<ChangeListener>()

  /** Notifies the listener until the returned function is called. */
  add(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /** Notifies of changes of jobs, which one step has made; without any, wakes the boards. */
  notify(...batch: readonly BoardChange[]): void {
    for (const listener of this.#listeners) listener.changes?.(batch)
  }

  notifyPaused(paused: boolean): void {
    for (const listener of this.#listeners) listener.paused?.(paused)
  }

  notifyBatch(uuid: string): void {
    for (const listener of this.#listeners) listener.batchChanged?.(uuid)
  }

  notifyRecords(names: readonly RecordName[]): void {
    for (const listener of this.#listeners) listener.records?.(names)
  }
}
