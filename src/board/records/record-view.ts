/**
 * Keeps the records of one kind in memory, and current: the backend hints at records that have changed, and the view reads them again.
 *
 *     closed ──open──→ watching ──list──→ current ⇄ reading changed records
 *                                            ↑            │ error
 *                                            └── list ────┘ gap
 *
 * One reading is under way at a time, so an older answer never replaces a newer one.
 */
import { retryUntilAborted } from '../../core/async/retry.ts'
import { asError, NotConnected } from '../../core/errors.ts'
import type { BackendRecords } from '../contract/index.ts'
import type { RecordName } from '../model/record.ts'
import type { ReadRecord, RecordStore } from './record-store.ts'

const RETRY_PAUSES_MS = { firstPauseMs: 100, maxPauseMs: 10_000 } as const

/** Begins and ends the reports of changes of a kind. */
export type RecordWatches = Pick<BackendRecords, 'watch' | 'unwatch'>

export interface RecordViewOptions<T extends object> {
  readonly watches: RecordWatches
  readonly store: RecordStore<T>
  /** Called for each record that has changed; the record is undefined if it was removed. */
  readonly onChange: (id: string, record: ReadRecord<T> | undefined) => void
  readonly onError: (error: Error) => void
  /** Called when the view is disposed of. */
  readonly onClose: () => void
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
}

export class RecordView<T extends object> implements AsyncDisposable {
  readonly #options: RecordViewOptions<T>
  readonly #records = new Map<string, ReadRecord<T>>()
  /** The ids of records that may have changed since they were read. */
  readonly #changed = new Set<string>()
  readonly #closing = new AbortController()
  #needsList = true
  #isOpen = false
  #reading: Promise<void> | undefined

  constructor(options: RecordViewOptions<T>) {
    this.#options = options
  }

  get kind(): string {
    return this.#options.store.kind.name
  }

  /** The records that were read last, by their ids. */
  get records(): ReadonlyMap<string, ReadRecord<T>> {
    return this.#records
  }

  /** Begins to watch, and resolves when all records are read. @throws NotConnected, AccessDenied */
  async open(): Promise<void> {
    await this.#options.watches.watch(this.kind)
    // Records that are reported as changed meanwhile are read afterwards.
    await this.#readOnce()
    this.#isOpen = true
    if (this.#needsList || this.#changed.size > 0) this.#read()
  }

  /** Reads the records that the backend reports as changed. */
  onHints(names: readonly RecordName[]): void {
    for (const { kind, id } of names) if (kind === this.kind) this.#changed.add(id)
    if (this.#changed.size > 0) this.#read()
  }

  /** Reads all records: changes may have been missed. */
  onGap(): void {
    this.#needsList = true
    this.#read()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    this.#options.onClose()
    await this.#options.watches.unwatch(this.kind)
  }

  #read(): void {
    if (!this.#isOpen || this.#reading || this.#closing.signal.aborted) return
    const { signal, onError } = this.#options
    const stop = AbortSignal.any([signal, this.#closing.signal])
    const onRetry = (error: unknown) => {
      // A lost connection is not reported here: a gap follows it, and then all records are read.
      if (!(error instanceof NotConnected)) onError(asError(error))
    }
    this.#reading = retryUntilAborted(() => this.#readOnce(), { ...RETRY_PAUSES_MS, signal: stop, onRetry })
      .catch(() => undefined)
      .finally(() => {
        this.#reading = undefined
        if (!stop.aborted && (this.#changed.size > 0 || this.#needsList)) this.#read()
      })
  }

  async #readOnce(): Promise<void> {
    if (this.#needsList) await this.#list()
    const { store } = this.#options
    const ids = [...this.#changed]
    this.#changed.clear()
    try {
      const found = await Promise.all(ids.map((id) => store.get(id)))
      for (const [index, id] of ids.entries()) this.#set(id, found[index])
    } catch (error) {
      for (const id of ids) this.#changed.add(id)
      throw error
    }
  }

  async #list(): Promise<void> {
    this.#needsList = false
    this.#changed.clear()
    try {
      const listed = await this.#options.store.list({ known: (id) => this.#records.get(id) })
      const found = new Map(listed.map((record) => [record.id, record]))
      for (const id of [...this.#records.keys()]) if (!found.has(id)) this.#set(id, undefined)
      for (const [id, record] of found) this.#set(id, record)
    } catch (error) {
      this.#needsList = true
      throw error
    }
  }

  #set(id: string, record: ReadRecord<T> | undefined): void {
    if (this.#closing.signal.aborted || this.#records.get(id)?.revision === record?.revision) return
    if (record) this.#records.set(id, record)
    else this.#records.delete(id)
    this.#options.onChange(id, record)
  }
}
