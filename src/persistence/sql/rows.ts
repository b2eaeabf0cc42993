/** Between what logbooks hold and what tables hold. */
import { decode, encode } from '../../core/codec.ts'
import type { AtomState, FlowState } from '../../core/states.ts'
import { fromStorable, type Row, storable } from '../../postgres/index.ts'
import { writtenAtom } from '../flow-image.ts'
import type { AtomDetail, BookDetail, FlowDetail, Meta, StateChange } from '../models.ts'

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

/** @throws InvalidArgument when it is no plain data */
export function bytes(value: unknown): Buffer {
  return Buffer.from(encode(value, 'msgpack'))
}

export function statesJson(states: readonly StateChange<FlowState | AtomState>[]): string {
  return JSON.stringify(states)
}

export function bookOf(row: Row): BookDetail {
  return {
    uuid: text(row, 'uuid'),
    name: text(row, 'name'),
    meta: record(row, 'meta'),
    createdAt: instant(row, 'created_at'),
    updatedAt: instant(row, 'updated_at'),
  }
}

export function flowOf(row: Row, atoms: readonly AtomDetail[]): FlowDetail {
  return {
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
}

export function atomOf(row: Row): AtomDetail {
  const body = record(row, 'body') as Omit<
    AtomDetail,
    'name' | 'kind' | 'version' | 'state' | 'intention' | 'updatedAt'
  >
  return {
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
}

function text(row: Row, column: string): string {
  return fromStorable(String(row[column]))
}

function record(row: Row, column: string): Meta {
  return decode(row[column] as Uint8Array, 'msgpack') as Meta
}

function instant(row: Row, column: string): Date {
  return new Date(row[column] as string | Date)
}

function states<S extends FlowState | AtomState>(row: Row): readonly StateChange<S>[] {
  const told = row['states']
  const parsed = (typeof told === 'string' ? JSON.parse(told) : told) as { state: S; at: string; run: number }[]
  return parsed.map(({ state, at, run }) => ({ state, at: new Date(at), run }))
}
