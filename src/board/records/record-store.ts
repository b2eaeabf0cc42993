/** Reads and writes the records of one kind. */
import { mapInTurns } from '../../core/async/turns.ts'
import { InvalidPosting, isError } from '../../core/errors.ts'
import { shareOfHeap } from '../../core/memory-size.ts'
import { defined } from '../../core/options.ts'
import type { Backend, PostRequest, Written } from '../contract/index.ts'
import {
  assertRecordName,
  assertWrite,
  decodeRecord,
  encodeRecord,
  MAX_RECORD_BYTES,
  type RecordChange,
  type StoredRecord,
} from '../model/record.ts'

/** A kind of records: its name, its format, and the parser of its values. */
export interface RecordKind<T extends object> {
  readonly name: string
  /** The newest format that this release reads. It writes this format, too, unless {@link formatOf} returns another. */
  readonly format: number
  /** Returns the oldest format whose releases can read the value. */
  formatOf?(value: T): number
  /** The maximum encoded size of a record of this kind, if it is less than the maximum for all records. */
  readonly maxBytes?: number
  /** Reads a value of this format or an older one, from a record of that encoded size. @throws InvalidPosting */
  readonly parse: (value: unknown, id: string, recordBytes: number) => T
}

export interface BoardRecord<T extends object> {
  readonly id: string
  readonly revision: number
  readonly value: T
}

/** A record that this release cannot read: a newer release has written it, or it was changed by hand. */
export interface UnreadableRecord {
  readonly id: string
  readonly revision: number
  readonly error: Error
}

export type ReadRecord<T extends object> = BoardRecord<T> | UnreadableRecord

/** The options of a list of records. */
interface ListOptions<T extends object> {
  readonly known?: (id: string) => ReadRecord<T> | undefined
  readonly memory?: number
}

/** The records of one kind may take the heap divided by this number. */
const LIST_PARTS = 8
/** The estimated memory of a decoded record in addition to its encoded size. */
const RECORD_OVERHEAD_BYTES = 500

/** A change of one record. */
export interface ValueChange<T extends object> {
  readonly id: string
  /** The revision that the record must have, otherwise the change is refused; undefined if the record must not exist. */
  readonly revision: number | undefined
  /** The new value; undefined removes the record. */
  readonly value: T | undefined
}

export class RecordStore<T extends object> {
  readonly kind: RecordKind<T>
  readonly #backend: Backend

  constructor(backend: Backend, kind: RecordKind<T>) {
    this.#backend = backend
    this.kind = kind
  }

  /**
   * Returns all records of the kind, ordered by their ids. The memory of a list is limited, because clients may write more records than a
   * process can keep: each record that exceeds the limit is listed with an error.
   *
   * @param options.known returns a record that was read before: the same revision is not decoded again
   * @param options.memory the memory that the list may take, in bytes
   * @throws NotConnected
   */
  async list({ known, memory = shareOfHeap(LIST_PARTS) }: ListOptions<T> = {}): Promise<ReadRecord<T>[]> {
    const stored = await this.#backend.records.list(this.kind.name)
    let left = memory
    return mapInTurns(stored, (record) => {
      const { id, revision, bytes } = record
      left -= bytes.length + RECORD_OVERHEAD_BYTES
      if (left < 0) {
        const why = `the records of this kind take more than ${memory} bytes of memory; remove some of them`
        return { id, revision, error: new InvalidPosting(`${this.kind.name} ${id} cannot be read: ${why}`) }
      }
      const before = known?.(id)
      return before?.revision === revision ? before : this.#read(record)
    })
  }

  /** Returns a record; undefined if there is none. @throws NotConnected; InvalidArgument for an invalid id */
  async get(id: string): Promise<ReadRecord<T> | undefined> {
    const name = { kind: this.kind.name, id }
    assertRecordName(name)
    const stored = await this.#backend.records.get(name)
    return stored && this.#read(stored)
  }

  /**
   * Changes records and posts jobs in one transaction: all or nothing.
   *
   * @throws NotConnected, OutcomeUnknown, InvalidArgument, PayloadTooLarge
   */
  async write(changes: readonly ValueChange<T>[], posts: readonly PostRequest[] = []): Promise<Written> {
    const request = { changes: changes.map((change) => this.toChange(change)), posts }
    assertWrite(request)
    return this.#backend.records.write(request)
  }

  /** Encodes a change, for a write of records of several kinds. @throws InvalidArgument, PayloadTooLarge */
  toChange({ id, revision, value }: ValueChange<T>): RecordChange {
    const name = { kind: this.kind.name, id }
    const { maxBytes } = this.kind
    const format = (value && this.kind.formatOf?.(value)) ?? this.kind.format
    const options = { ...name, format, ...defined({ maxBytes }) }
    const bytes = value === undefined ? undefined : encodeRecord(value, options)
    return { ...name, revision, bytes }
  }

  #read({ id, revision, bytes }: StoredRecord): ReadRecord<T> {
    const { name: kind, format, maxBytes = MAX_RECORD_BYTES, parse } = this.kind
    try {
      if (bytes.length > maxBytes)
        throw new InvalidPosting(`${kind} ${id} cannot be read: it has ${bytes.length} bytes, more than ${maxBytes}`)
      return { id, revision, value: parse(decodeRecord(bytes, { kind, id, format }), id, bytes.length) }
    } catch (error) {
      return { id, revision, error: isError(error) ? error : new Error(String(error)) }
    }
  }
}
