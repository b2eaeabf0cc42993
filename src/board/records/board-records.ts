/** Gives access to the records of an open board by their kinds, and passes the hints of the backend to the views of the kinds. */
import { keepNewest } from '../../core/collections/keep-newest.ts'
import type { Backend } from '../contract/index.ts'
import type { RecordName } from '../model/record.ts'
import { type ReadRecord, type RecordKind, RecordStore, type UnreadableRecord } from './record-store.ts'
import { RecordView, type RecordWatches } from './record-view.ts'

export interface BoardRecordsOptions {
  readonly backend: Backend
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

/** The number of unreadable records that are remembered as reported. */
const MAX_REPORTED = 1_000

type RecordListener = Pick<RecordView<object>, 'kind' | 'onHints' | 'onGap'>

export class BoardRecords {
  readonly #options: BoardRecordsOptions
  readonly #views = new Set<RecordListener>()
  readonly #reported = new Map<string, number>()

  constructor(options: BoardRecordsOptions) {
    this.#options = options
  }

  /** Returns the records of a kind. */
  of<T extends object>(kind: RecordKind<T>): RecordStore<T> {
    return new RecordStore(this.#options.backend, kind)
  }

  /**
   * Opens a view of the records of a kind. The view stays current until it is disposed of.
   *
   * @throws NotConnected, AccessDenied
   */
  async view<T extends object>(
    kind: RecordKind<T>,
    onChange: (id: string, record: ReadRecord<T> | undefined) => void = () => undefined,
  ): Promise<RecordView<T>> {
    const { backend, signal, onError } = this.#options
    const store = this.of(kind)
    const view = new RecordView({
      ...{ watches: this.#sharedWatches(backend), store, onChange, onError, signal },
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

  /**
   * Calls the listener whenever records of the kind may have changed, until the result is disposed of.
   *
   * @throws NotConnected, AccessDenied
   */
  async watch(kind: string, onChange: () => void): Promise<AsyncDisposable> {
    const listener: RecordListener = {
      kind,
      onHints: (names) => {
        if (names.some((name) => name.kind === kind)) onChange()
      },
      onGap: onChange,
    }
    const shared = this.#sharedWatches(this.#options.backend)
    this.#views.add(listener)
    try {
      await shared.watch(kind)
    } catch (error) {
      this.#views.delete(listener)
      throw error
    }
    return {
      [Symbol.asyncDispose]: async () => {
        this.#views.delete(listener)
        await shared.unwatch(kind)
      },
    }
  }

  /** Reports a record that cannot be read and is left out of a list; once for each of its revisions, because lists are read often. */
  report(kind: string, { id, revision, error }: UnreadableRecord): void {
    const name = `${kind}/${id}`
    if (this.#reported.get(name) === revision) return
    this.#reported.set(name, revision)
    keepNewest(this.#reported, MAX_REPORTED)
    this.#options.onError(error)
  }

  /** Passes on that these records may have changed; without names, that any may have. */
  onHints(names?: readonly RecordName[]): void {
    if (names) for (const view of this.#views) view.onHints(names)
    else this.onGap()
  }

  /** Passes on that hints may have been missed. */
  onGap(): void {
    for (const view of this.#views) view.onGap()
  }

  /** Returns the watches of the backend, shared by all listeners of a kind: only the last one of a kind ends its watch. */
  #sharedWatches({ records }: Pick<Backend, 'records'>): RecordWatches {
    return {
      watch: (kind) => records.watch(kind),
      unwatch: async (kind) => {
        if (![...this.#views].some((view) => view.kind === kind)) await records.unwatch(kind)
      },
    }
  }
}
