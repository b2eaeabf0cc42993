/** The records of an open board: gives access to each kind, and passes the reports of the backend to the views of the kinds. */
import type { Backend } from '../backend.ts'
import type { RecordName } from '../model/record.ts'
import { type ReadRecord, type RecordKind, RecordStore } from './record-store.ts'
import { RecordView } from './record-view.ts'

export interface BoardRecordsOptions {
  readonly backend: Backend
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

export class BoardRecords {
  readonly #options: BoardRecordsOptions
  readonly #views = new Set<Pick<RecordView<object>, 'kind' | 'onHints' | 'onGap'>>()

  constructor(options: BoardRecordsOptions) {
    this.#options = options
  }

  of<T extends object>(kind: RecordKind<T>): RecordStore<T> {
    return new RecordStore(this.#options.backend, kind)
  }

  /**
   * Opens a view of a kind, which is current until it is disposed of.
   *
   * @throws UnsupportedCapability, NotConnected, AccessDenied
   */
  async view<T extends object>(
    kind: RecordKind<T>,
    onChange: (id: string, record: ReadRecord<T> | undefined) => void = () => undefined,
  ): Promise<RecordView<T>> {
    const { backend, signal, onError } = this.#options
    const store = this.of(kind)
    const view = new RecordView({
      ...{ backend: this.#sharedWatches(backend), store, onChange, onError, signal },
      onClose: () => this.#views.delete(view),
    })
    this.#views.add(view)
    try {
      await view.open()
      return view
    } catch (error) {
      await view[Symbol.asyncDispose]()
      throw error
    }
  }

  onHints(names?: readonly RecordName[]): void {
    if (names) for (const view of this.#views) view.onHints(names)
    else this.onGap()
  }

  onGap(): void {
    for (const view of this.#views) view.onGap()
  }

  /** Returns the watches of the backend, of which the last view of a kind ends the one. */
  #sharedWatches(backend: Backend): Pick<Backend, 'watchRecords' | 'unwatchRecords'> {
    return {
      watchRecords: async (kind) => backend.watchRecords?.(kind),
      unwatchRecords: async (kind) => {
        if (![...this.#views].some((view) => view.kind === kind)) await backend.unwatchRecords?.(kind)
      },
    }
  }
}
