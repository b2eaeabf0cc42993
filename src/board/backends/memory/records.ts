/** The records of a memory board. */
import type { RecordChange, RecordName, StoredRecord } from '../../model/record.ts'

export class MemoryRecords {
  readonly #kinds = new Map<string, Map<string, StoredRecord>>()
  readonly #listeners = new Set<(names: readonly RecordName[]) => void>()
  #revision = 0

  watch(listener: (names: readonly RecordName[]) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  list(kind: string): StoredRecord[] {
    return [...(this.#kinds.get(kind)?.values() ?? [])].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  get({ kind, id }: RecordName): StoredRecord | undefined {
    return this.#kinds.get(kind)?.get(id)
  }

  /** Returns the first record that is at another revision than its change expects. */
  findConflict(changes: readonly RecordChange[]): RecordName | undefined {
    return changes.find((change) => this.get(change)?.revision !== change.revision)
  }

  /** Carries the changes out; returns the new revisions. */
  apply(changes: readonly RecordChange[]): (number | undefined)[] {
    const revisions = changes.map((change) => this.#apply(change))
    if (changes.length > 0) for (const listener of this.#listeners) listener(changes)
    return revisions
  }

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
