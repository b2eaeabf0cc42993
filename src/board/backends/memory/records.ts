/** The records of a memory board, which change together with posts. */
import type { BackendRecords, WriteRequest, Written } from '../../contract/index.ts'
import { changesLimits, type RecordChange, type RecordName, type StoredRecord } from '../../model/record.ts'
import type { BatchSteps } from './batches.ts'
import type { DependencySteps } from './dependencies.ts'
import type { JobSteps } from './jobs.ts'
import type { KeySteps } from './keys.ts'
import type { LimitSteps } from './limits.ts'
import type { MemoryBoard } from './store/board.ts'
import type { ChangeListeners } from './store/change-listeners.ts'
import { type EncodedPost, encodePost } from './store/rows.ts'

export interface RecordsOptions {
  readonly changes: ChangeListeners
  readonly jobs: JobSteps
  readonly keys: KeySteps
  readonly dependencies: DependencySteps
  readonly batches: BatchSteps
  readonly limits: LimitSteps
}

export class RecordSteps {
  readonly #options: RecordsOptions
  readonly #kinds = new Map<string, Map<string, StoredRecord>>()
  #revision = 0

  constructor(options: RecordsOptions) {
    this.#options = options
  }

  list(kind: string): StoredRecord[] {
    return [...(this.#kinds.get(kind)?.values() ?? [])].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  get({ kind, id }: RecordName): StoredRecord | undefined {
    return this.#kinds.get(kind)?.get(id)
  }

  /** Changes records and posts jobs, or does nothing of it. @throws NotFound, InvalidState, Duplicate if a batch refuses a post */
  write(changes: readonly RecordChange[], posts: readonly EncodedPost[]): Written {
    const { jobs, keys, dependencies, batches, limits } = this.#options
    const conflict = changes.find((change) => this.get(change)?.revision !== change.revision)
    if (conflict) return { done: false, conflict: { kind: conflict.kind, id: conflict.id } }
    const requests = posts.map(({ request }) => request)
    const names = new Set<string>()
    for (const { key } of requests.map(({ posting }) => posting)) {
      if (key === undefined) continue
      if (names.has(key) || keys.holderOf(key)) return { done: false, conflict: { key } }
      names.add(key)
    }
    const gone = dependencies.findGone(requests.flatMap(({ after = [] }) => after))
    if (gone.length > 0) return { done: false, conflict: { gone } }
    batches.assertTakes(requests)
    if (changesLimits(changes)) limits.noteChange()
    const revisions = changes.map((change) => this.#apply(change))
    if (changes.length > 0) this.#options.changes.notifyRecords(changes)
    return { done: true, revisions, posted: posts.map((post) => jobs.post(post)) }
  }

  /** Carries a change out; returns the new revision, undefined for a removal. */
  #apply({ kind, id, bytes }: RecordChange): number | undefined {
    const ofKind = this.#kinds.get(kind) ?? new Map<string, StoredRecord>()
    this.#kinds.set(kind, ofKind)
    this.#revision += 1
    if (!bytes) {
      ofKind.delete(id)
      return undefined
    }
    ofKind.set(id, { kind, id, bytes: Uint8Array.from(bytes), revision: this.#revision })
    return this.#revision
  }
}

export class MemoryRecords implements BackendRecords {
  readonly #board: MemoryBoard<{ readonly records: RecordSteps; readonly changes: ChangeListeners }>

  constructor(board: MemoryBoard<{ readonly records: RecordSteps; readonly changes: ChangeListeners }>) {
    this.#board = board
  }

  async write({ changes, posts }: WriteRequest): Promise<Written> {
    return this.#board.steps.records.write(changes, posts.map(encodePost))
  }

  async list(kind: string): Promise<StoredRecord[]> {
    return this.#board.steps.records.list(kind)
  }

  async get(name: RecordName): Promise<StoredRecord | undefined> {
    return this.#board.steps.records.get(name)
  }

  async watch(kind: string): Promise<void> {
    const { sink } = this.#board.requireOpen()
    const { changes } = this.#board.steps
    const records = (names: readonly RecordName[]) => {
      const watched = names.filter((name) => name.kind === kind)
      if (watched.length > 0) sink.records(watched)
    }
    this.#board.watch(`records: ${kind}`, () => changes.add({ records }))
  }

  async unwatch(kind: string): Promise<void> {
    this.#board.unwatch(`records: ${kind}`)
  }
}
