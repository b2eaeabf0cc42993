/** Reads and writes the records of one kind. */
import { UnsupportedCapability } from '../../core/errors.ts'
import type { Backend, PostRequest, Written } from '../backend.ts'
import {
  assertRecordName,
  assertWrite,
  decodeRecord,
  encodeRecord,
  type RecordChange,
  type StoredRecord,
} from '../model/record.ts'

/** A kind of records: its name, its format, and the parser of its values. */
export interface RecordKind<T extends object> {
  readonly name: string
  /** The newest format that this release reads, and the one that it writes. */
  readonly format: number
  /** Reads a value of this format or an older one. @throws InvalidPosting */
  readonly parse: (value: unknown, id: string) => T
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

  /** Returns all records of the kind, ordered by their ids. @throws UnsupportedCapability, NotConnected */
  async list(): Promise<ReadRecord<T>[]> {
    const { records } = this.#requireRecords()
    const stored = await records.call(this.#backend, this.kind.name)
    return stored.map((record) => this.#read(record))
  }

  /** Returns a record; undefined if there is none. @throws UnsupportedCapability, NotConnected; InvalidArgument for an invalid id */
  async get(id: string): Promise<ReadRecord<T> | undefined> {
    const name = { kind: this.kind.name, id }
    assertRecordName(name)
    const stored = await this.#requireRecords().record.call(this.#backend, name)
    return stored && this.#read(stored)
  }

  /**
   * Changes records and posts jobs in one transaction: all or nothing.
   *
   * @throws UnsupportedCapability, NotConnected, OutcomeUnknown, InvalidArgument, PayloadTooLarge
   */
  async write(changes: readonly ValueChange<T>[], posts: readonly PostRequest[] = []): Promise<Written> {
    const request = { changes: changes.map((change) => this.toChange(change)), posts }
    assertWrite(request)
    return this.#requireRecords().write.call(this.#backend, request)
  }

  /** Encodes a change, for a write of records of several kinds. @throws InvalidArgument, PayloadTooLarge */
  toChange({ id, revision, value }: ValueChange<T>): RecordChange {
    const name = { kind: this.kind.name, id }
    const bytes = value && encodeRecord(value, { ...name, format: this.kind.format })
    return { ...name, revision, bytes }
  }

  #read({ id, revision, bytes }: StoredRecord): ReadRecord<T> {
    const { name: kind, format, parse } = this.kind
    try {
      return { id, revision, value: parse(decodeRecord(bytes, { kind, id, format }), id) }
    } catch (error) {
      return { id, revision, error: error instanceof Error ? error : new Error(String(error)) }
    }
  }

  #requireRecords(): Required<Pick<Backend, 'write' | 'records' | 'record'>> {
    const { write, records, record, uri } = this.#backend
    if (write && records && record) return { write, records, record }
    throw new UnsupportedCapability(`board ${uri} has no records, so it cannot store ${this.kind.name} records`, {
      capability: 'records',
    })
  }
}
