/**
 * Jobs that boards without multi have trashed: marked where their posting is, because they cannot write two znodes at once.
 * Whoever reads such a mark tells that the job is trashed, and moves it into the trash. Any board may, several at once too.
 */
import type { BoardChange } from '../../../backend.ts'
import type { MarkedJob } from './reader.ts'

export interface TrashMarksOptions {
  /** Reads these postings; of what is marked {@link TrashMarks.noteMarked} is told. */
  readonly read: (ids: readonly string[]) => Promise<unknown>
  readonly move: (marked: MarkedJob) => Promise<void>
  readonly onChanges: (changes: readonly BoardChange[]) => void
  readonly onError: (error: unknown) => void
}

export class TrashMarks {
  readonly #options: TrashMarksOptions
  /** Postings that were written since they were last read here: claimed ones, most of them. */
  readonly #unread = new Set<string>()
  readonly #moving = new Map<string, Promise<void>>()

  constructor(options: TrashMarksOptions) {
    this.#options = options
  }

  changed(batch: readonly BoardChange[]): void {
    for (const { kind, id } of batch) {
      if (kind === 'updated') this.#unread.add(id)
      else if (kind === 'gone') this.#unread.delete(id)
    }
  }

  /** These postings were read. */
  noteRead(ids: readonly string[]): void {
    for (const id of ids) this.#unread.delete(id)
  }

  noteMarked(marked: MarkedJob): void {
    const { move, onChanges, onError } = this.#options
    const { id } = marked
    onChanges([{ kind: 'trashed', id }])
    if (this.#moving.has(id)) return
    const moving = move(marked)
      .catch(onError)
      .finally(() => this.#moving.delete(id))
    this.#moving.set(id, moving)
  }

  /** Resolves when everything is in the trash that was marked by the call, as far as it was told of. */
  async whenSettled(): Promise<void> {
    const unread = [...this.#unread]
    if (unread.length > 0) await this.#options.read(unread)
    await Promise.all(this.#moving.values())
  }

  /** The same for one job. */
  async whenMoved(id: string): Promise<void> {
    await this.#options.read([id])
    await this.#moving.get(id)
  }
}
