/** Converts between records of logbooks and rows of tables, in Postgres and in SQLite. */
import { messageOf, StorageFailure } from '../core/errors.ts'
import type { AtomState, FlowState } from '../core/states.ts'
import { decodeText, encodeText } from '../core/texts.ts'
import { checkAtom, checkBook, checkFlow, damagedRecordError } from './checked-records.ts'
import { MAX_STATES } from './flow-record.ts'
import type { AtomDetail, BookDetail, FlowDetail, LogBook, Meta, StateChange } from './models.ts'
import { encodeRecord, RecordDecoder } from './record-memory.ts'

/** A row of any table, by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>

/** The columns of an atom, without its creation time and its states. */
export interface AtomColumns {
  readonly name: string
  readonly kind: string
  readonly version: string
  readonly state: string
  readonly intention: string
  readonly updatedAt: Date
  readonly body: Buffer
}

/** Returns the columns of an atom. @throws InvalidArgument when a result is not plain data */
export function atomColumns(atom: AtomDetail): AtomColumns {
  const { name, kind, version, state, intention, updatedAt } = atom
  return {
    name: encodeText(name),
    kind,
    version: encodeText(version),
    state,
    intention,
    updatedAt,
    body: encodeBody(atom),
  }
}

/** The fields of an atom that have columns of their own; the last two are set by the logbook. */
const COLUMN_FIELDS: ReadonlySet<string> = new Set(
  'name kind version state intention updatedAt createdAt states'.split(' '),
)

/** The body of an atom that has not reported or returned anything, as most atoms that begin. */
const BARE_BODY = toBytes({ meta: {} })

/** Encodes the body of an atom: the fields that have no column. @throws InvalidArgument when a result is not plain data */
function encodeBody(atom: AtomDetail): Buffer {
  // Field by field: records have several shapes, and a spread would give each body a new one.
  const body: Record<string, unknown> = {}
  let isBare = true
  for (const field in atom) {
    if (COLUMN_FIELDS.has(field)) continue
    const value = atom[field as keyof AtomDetail]
    body[field] = value
    isBare &&= field === 'meta' && typeof value === 'object' && value !== null && isEmpty(value)
  }
  return isBare && 'meta' in body ? BARE_BODY : toBytes(body)
}

function isEmpty(value: object): boolean {
  for (const _ in value) return false
  return true
}

/**
 * Encodes a value. @throws InvalidArgument when it is not plain data; StorageFailure when it could not be read again
 */
export function toBytes(value: unknown): Buffer {
  const { buffer, byteOffset, byteLength } = encodeRecord(value)
  return Buffer.from(buffer, byteOffset, byteLength)
}

export function encodeStates(states: readonly StateChange<FlowState | AtomState>[]): string {
  return JSON.stringify(states)
}

/** Changes encoded states for the parameter of a statement. */
export type EscapeStates = (json: string) => string

const asIs: EscapeStates = (json) => json

/** The beginning of a change by its state, for each way to escape; shared by all flows. */
const BEGINNINGS = new WeakMap<EscapeStates, Map<string, string>>()
/** The maximum number of beginnings: without it, a program that writes unknown states would fill the memory. */
const MAX_BEGINNINGS = 100

const NO_END = { at: undefined, run: 0, text: '' }

/** The encoded states of a flow and its atoms. Each change of a state is encoded once, although every write has all states. */
export class PastTexts {
  readonly #escape: EscapeStates
  readonly #beginnings: Map<string, string>
  readonly #known = new Map<string, { readonly count: number; readonly text: string }>()
  /** The time and the run of the change that was encoded last, and their text. */
  #lastEnd: { readonly at: Date | undefined; readonly run: number; readonly text: string } = NO_END

  /** @param escapeStates leaves brackets, commas and numbers as they are; without it, the states are plain JSON */
  constructor(escapeStates: EscapeStates = asIs) {
    this.#escape = escapeStates
    this.#beginnings = BEGINNINGS.get(escapeStates) ?? new Map()
    BEGINNINGS.set(escapeStates, this.#beginnings)
  }

  /** Encodes the states as JSON, escaped. @param states the states of earlier calls and later ones */
  encode(name: string, states: readonly StateChange<FlowState | AtomState>[]): string {
    const { length } = states
    const known = this.#known.get(name)
    // A full list has lost its oldest state.
    const isLonger = known !== undefined && known.count > 0 && known.count <= length && length < MAX_STATES
    let text = isLonger ? known.text : ''
    for (const change of isLonger ? states.slice(known.count) : states)
      text = text === '' ? this.#encodeChange(change) : `${text},${this.#encodeChange(change)}`
    this.#known.set(name, { count: length, text })
    return `[${text}]`
  }

  /** Encodes one change of a state. */
  #encodeChange({ state, at, run }: StateChange<FlowState | AtomState>): string {
    // All changes of one transition have the same Date object and run: their end is encoded once.
    if (at !== this.#lastEnd.at || run !== this.#lastEnd.run)
      this.#lastEnd = { at, run, text: this.#escape(`,"at":"${at.toISOString()}","run":${run}}`) }
    return this.#toBeginning(state) + this.#lastEnd.text
  }

  /** Returns the encoded beginning of a change, with its state. */
  #toBeginning(state: string): string {
    const known = this.#beginnings.get(state)
    if (known !== undefined) return known
    const text = this.#escape(`{"state":${JSON.stringify(state)}`)
    if (this.#beginnings.size < MAX_BEGINNINGS) this.#beginnings.set(state, text)
    return text
  }
}

/** Parses the row of a book. @throws StorageFailure when the row is damaged */
export function parseBook(row: Row): BookDetail {
  const book = {
    uuid: readText(row, 'uuid'),
    name: readText(row, 'name'),
    meta: decodeColumn(row, 'meta'),
    createdAt: readInstant(row, 'created_at'),
    updatedAt: readInstant(row, 'updated_at'),
  }
  return checkBook(book, `logbook ${book.uuid}`)
}

/** Parses the row of a flow. @throws StorageFailure when the row is damaged */
export function parseFlow(row: Row, atoms: readonly AtomDetail[]): FlowDetail {
  const flow = {
    uuid: readText(row, 'uuid'),
    name: readText(row, 'name'),
    version: readText(row, 'version'),
    state: readText(row, 'state') as FlowState,
    meta: decodeColumn(row, 'meta'),
    run: Number(row['run']),
    claim: readText(row, 'claim'),
    atoms,
    states: readStates<FlowState>(row),
    createdAt: readInstant(row, 'created_at'),
    updatedAt: readInstant(row, 'updated_at'),
  }
  // The atoms were checked one by one.
  return { ...checkFlow(flow, `flow ${flow.uuid}`), atoms }
}

/**
 * Parses the row of an atom.
 *
 * @param decoder one decoder for all atoms that are read together
 * @throws StorageFailure when the row is damaged
 */
export function parseAtom(row: Row, decoder: RecordDecoder): AtomDetail {
  const body = decodeColumn(row, 'body', decoder)
  const atom = {
    ...body,
    name: readText(row, 'name'),
    kind: readText(row, 'kind') as AtomDetail['kind'],
    version: readText(row, 'version'),
    state: readText(row, 'state') as AtomState,
    intention: readText(row, 'intention') as AtomDetail['intention'],
    updatedAt: readInstant(row, 'updated_at'),
    createdAt: readInstant(row, 'created_at'),
    states: readStates<AtomState>(row),
  }
  return checkAtom(atom, `atom ${atom.name}`)
}

/**
 * Parses a book with its flows. There is a row for each atom, one for a flow without atoms, one for a book without flows.
 *
 * @throws StorageFailure when a row is damaged
 */
export function parseLogBook(uuid: string, rows: readonly Row[]): LogBook {
  return withBookName(uuid, () => ({ ...parseBook(stripPrefix(rows[0] ?? {}, 'book_')), flows: parseFlows(rows) }))
}

/** Adds the book's UUID to the error of a damaged row: the row of an atom does not contain it. */
function withBookName<T>(uuid: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof StorageFailure) || error.message.includes(uuid)) throw error
    throw new StorageFailure(`logbook ${uuid}: ${error.message}`, { cause: error })
  }
}

/** Parses the flows of a book. The rows of a flow are adjacent. */
function parseFlows(rows: readonly Row[]): FlowDetail[] {
  const flows: { row: Row; atoms: AtomDetail[] }[] = []
  const decoder = new RecordDecoder()
  for (const row of rows) {
    if (row['f_id'] === null) continue
    if (flows.at(-1)?.row['f_id'] !== row['f_id']) flows.push({ row, atoms: [] })
    if (row['a_flow'] !== null) flows.at(-1)?.atoms.push(parseAtom(stripPrefix(row, 'a_'), decoder))
  }
  return flows.map(({ row, atoms }) => parseFlow(stripPrefix(row, 'f_'), atoms))
}

function stripPrefix(row: Row, prefix: string): Row {
  const own = Object.entries(row).filter(([column]) => column.startsWith(prefix))
  return Object.fromEntries(own.map(([column, value]) => [column.slice(prefix.length), value]))
}

function readText(row: Row, column: string): string {
  return decodeText(String(row[column]))
}

function decodeColumn(row: Row, column: string, decoder = new RecordDecoder()): Meta {
  try {
    const value = decoder.decode(row[column] as Uint8Array)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Meta
  } catch (cause) {
    throw damagedRecordError(`column ${column} of a logbook`, messageOf(cause), cause)
  }
  throw damagedRecordError(`column ${column} of a logbook`, 'it is not an object')
}

function readInstant(row: Row, column: string): Date {
  return new Date(row[column] as string | Date)
}

function readStates<S extends FlowState | AtomState>(row: Row): readonly StateChange<S>[] {
  const column = row['states']
  const parsed: unknown = typeof column === 'string' ? JSON.parse(column) : column
  if (!Array.isArray(parsed)) throw damagedRecordError('column states of a logbook', 'it is not a list')
  return parsed.map((change: unknown) => {
    const { state, at, run } = Object(change) as { state: S; at: string; run: number }
    return { state, at: new Date(at), run }
  })
}
