/** Between what logbooks hold and what tables hold. */
import type { AtomState, FlowState } from '../../core/states.ts'
import { fromStorable, type Row, storable } from '../../postgres/index.ts'
import { checkedAtom, checkedBook, checkedFlow, damaged } from '../checked-records.ts'
import { writtenAtom } from '../flow-image.ts'
import type { AtomDetail, BookDetail, FlowDetail, Meta, StateChange } from '../models.ts'
import { encodeRecord, RecordDecoder } from '../record-memory.ts'

/** An atom's columns, but for when it was made and what it went through. */
export interface AtomColumns {
  readonly name: string
  readonly kind: string
  readonly version: string
  readonly state: string
  readonly intention: string
  readonly updatedAt: Date
  readonly body: Buffer
}

/** @throws InvalidArgument when a result is no plain data */
export function atomColumns(atom: AtomDetail): AtomColumns {
  const { name, kind, version, state, intention, updatedAt, ...body } = writtenAtom(atom)
  return { name: storable(name), kind, version: storable(version), state, intention, updatedAt, body: bytes(body) }
}

/** @throws InvalidArgument when it is no plain data; StorageFailure when it could not be read again */
export function bytes(value: unknown): Buffer {
  return Buffer.from(encodeRecord(value))
}

export function statesJson(states: readonly StateChange<FlowState | AtomState>[]): string {
  return JSON.stringify(states)
}

/** @throws StorageFailure when the row is damaged */
export function bookOf(row: Row): BookDetail {
  const book = {
    uuid: text(row, 'uuid'),
    name: text(row, 'name'),
    meta: record(row, 'meta'),
    createdAt: instant(row, 'created_at'),
    updatedAt: instant(row, 'updated_at'),
  }
  return checkedBook(book, `logbook ${book.uuid}`)
}

/** @throws StorageFailure when the row is damaged */
export function flowOf(row: Row, atoms: readonly AtomDetail[]): FlowDetail {
  const flow = {
    uuid: text(row, 'uuid'),
    name: text(row, 'name'),
    version: text(row, 'version'),
    state: text(row, 'state') as FlowState,
    meta: record(row, 'meta'),
    run: Number(row['run']),
    claim: text(row, 'claim'),
    atoms,
    states: states<FlowState>(row),
    createdAt: instant(row, 'created_at'),
    updatedAt: instant(row, 'updated_at'),
  }
  // The atoms were checked one by one.
  return { ...checkedFlow(flow, `flow ${flow.uuid}`), atoms }
}

/**
 * @param decoder one for all atoms that are read together
 * @throws StorageFailure when the row is damaged
 */
export function atomOf(row: Row, decoder: RecordDecoder): AtomDetail {
  const body = record(row, 'body', decoder)
  const atom = {
    ...body,
    name: text(row, 'name'),
    kind: text(row, 'kind') as AtomDetail['kind'],
    version: text(row, 'version'),
    state: text(row, 'state') as AtomState,
    intention: text(row, 'intention') as AtomDetail['intention'],
    updatedAt: instant(row, 'updated_at'),
    createdAt: instant(row, 'created_at'),
    states: states<AtomState>(row),
  }
  return checkedAtom(atom, `atom ${atom.name}`)
}

function text(row: Row, column: string): string {
  return fromStorable(String(row[column]))
}

function record(row: Row, column: string, decoder = new RecordDecoder()): Meta {
  try {
    const value = decoder.decode(row[column] as Uint8Array)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Meta
  } catch (cause) {
    throw damaged(`column ${column} of a logbook`, cause instanceof Error ? cause.message : String(cause), cause)
  }
  throw damaged(`column ${column} of a logbook`, 'it holds no object')
}

function instant(row: Row, column: string): Date {
  return new Date(row[column] as string | Date)
}

function states<S extends FlowState | AtomState>(row: Row): readonly StateChange<S>[] {
  const column = row['states']
  const parsed: unknown = typeof column === 'string' ? JSON.parse(column) : column
  if (!Array.isArray(parsed)) throw damaged('column states of a logbook', 'it is no list')
  return parsed.map((change: unknown) => {
    const { state, at, run } = Object(change) as { state: S; at: string; run: number }
    return { state, at: new Date(at), run }
  })
}
