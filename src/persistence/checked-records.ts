/**
 * Checks what comes out of storage to which others can write. A record that is not what this library writes is damaged: whoever
 * reads it is told so by one error, whose class says that only this record is concerned.
 */
import { StorageFailure } from '../core/errors.ts'
import { parseFailure } from '../core/read-failure.ts'
import { ATOM_TRANSITIONS, FLOW_TRANSITIONS, type Intention } from '../core/states.ts'
import { shortenText } from '../core/texts.ts'
import type { RecordedTransition } from './flow-record.ts'
import type { AtomDetail, BookDetail, FlowDetail } from './models.ts'

type Fields = Readonly<Record<string, unknown>>

const INTENTIONS: Readonly<Record<Intention, true>> = { EXECUTE: true, REVERT: true, RETRY: true, IGNORE: true }
const ATOM_KINDS: Readonly<Record<AtomDetail['kind'], true>> = { task: true, retry: true }

/** @throws StorageFailure for what is no book */
export function checkBook(value: unknown, where: string): BookDetail {
  const book = requireFields(value, where, 'the book')
  assertTexts(book, ['uuid', 'name'], where)
  requireFields(book['meta'], where, 'meta')
  assertDate(book['createdAt'], where, 'createdAt')
  // The first release did not write it.
  if (book['updatedAt'] === undefined) return { ...(value as BookDetail), updatedAt: book['createdAt'] as Date }
  assertDate(book['updatedAt'], where, 'updatedAt')
  return value as BookDetail
}

/** Checks a flow without looking at its atoms. @throws StorageFailure */
export function checkFlow(value: unknown, where: string): Omit<FlowDetail, 'atoms'> {
  const flow = requireFields(value, where, 'the flow')
  assertTexts(flow, ['uuid', 'name', 'version', 'claim'], where)
  requireFields(flow['meta'], where, 'meta')
  assertOneOf(flow['state'], FLOW_TRANSITIONS, where, 'state')
  if (!isCount(flow['run'])) throw damagedRecordError(where, 'run is no number of a run')
  assertDate(flow['createdAt'], where, 'createdAt')
  assertDate(flow['updatedAt'], where, 'updatedAt')
  assertStates(flow['states'], FLOW_TRANSITIONS, where)
  return value as Omit<FlowDetail, 'atoms'>
}

/** Checks a flow with its atoms. @throws StorageFailure */
export function checkFlowWithAtoms(value: unknown, where: string): FlowDetail {
  const flow = checkFlow(value, where)
  const { atoms }: { readonly atoms?: unknown } = flow as Fields
  if (!Array.isArray(atoms)) throw damagedRecordError(where, 'atoms is no list')
  return { ...flow, atoms: atoms.map((atom) => checkAtom(atom, where)) }
}

/** Checks an atom; its failures are cut to what is kept of any failure. @throws StorageFailure */
export function checkAtom(value: unknown, where: string): AtomDetail {
  const atom = requireFields(value, where, 'an atom')
  assertTexts(atom, ['name', 'version'], where)
  assertOneOf(atom['kind'], ATOM_KINDS, where, 'kind')
  assertOneOf(atom['state'], ATOM_TRANSITIONS, where, 'state')
  assertOneOf(atom['intention'], INTENTIONS, where, 'intention')
  requireFields(atom['meta'], where, 'meta')
  assertDate(atom['updatedAt'], where, 'updatedAt')
  if (atom['createdAt'] !== undefined) assertDate(atom['createdAt'], where, 'createdAt')
  assertStates(atom['states'], ATOM_TRANSITIONS, where)
  if (atom['sealed'] !== undefined) assertSeal(atom['sealed'], where)
  return { ...(value as AtomDetail), ...checkSecrets(atom, where) }
}

/** Checks what tasks have thrown, and what retries have tried. @throws StorageFailure */
export function checkSecrets(
  { failure, revertFailure, history }: Fields,
  where: string,
): Pick<AtomDetail, 'failure' | 'revertFailure' | 'history'> {
  const [failed, revertFailed] = [parseFailure(failure), parseFailure(revertFailure)]
  return {
    ...(failed ? { failure: failed } : {}),
    ...(revertFailed ? { revertFailure: revertFailed } : {}),
    ...(history === undefined ? {} : { history: checkHistory(history, where) }),
  }
}

/** @throws StorageFailure for what is no transition */
export function checkTransition(value: unknown, where: string): RecordedTransition {
  const { at, state, meta, atoms } = requireFields(value, where, 'a transition')
  assertDate(at, where, 'at')
  if (state !== undefined) assertOneOf(state, FLOW_TRANSITIONS, where, 'state')
  if (meta !== undefined) requireFields(meta, where, 'meta')
  if (atoms === undefined) return value as RecordedTransition
  if (!Array.isArray(atoms)) throw damagedRecordError(where, 'atoms is no list')
  return { ...(value as RecordedTransition), atoms: atoms.map((atom) => checkAtom(atom, where)) }
}

/** The error for a record that cannot be what this library has written. */
export function damagedRecordError(where: string, why: string, cause?: unknown): StorageFailure {
  const how = 'restore it or remove it'
  return new StorageFailure(`${where} is damaged: ${shortenText(why)}; ${how}`, { cause })
}

function checkHistory(value: unknown, where: string): NonNullable<AtomDetail['history']> {
  if (!Array.isArray(value)) throw damagedRecordError(where, 'history is no list')
  return value.map((attempt) => {
    const { value: tried, failures } = requireFields(attempt, where, 'an attempt')
    if (!Array.isArray(failures)) throw damagedRecordError(where, 'failures is no list')
    return {
      value: tried,
      failures: failures.map((each) => {
        const { atom, failure } = requireFields(each, where, 'a failure')
        const read = parseFailure(failure)
        if (typeof atom !== 'string' || !read) throw damagedRecordError(where, 'a failure names no atom')
        return { atom, failure: read }
      }),
    }
  })
}

function assertSeal(value: unknown, where: string): void {
  const { by, bytes } = requireFields(value, where, 'sealed')
  const isNamed = Array.isArray(by) && by.every((name) => typeof name === 'string')
  if (!isNamed || !(bytes instanceof Uint8Array))
    throw damagedRecordError(where, 'sealed names no codecs, or has no bytes')
}

function assertStates(value: unknown, known: object, where: string): void {
  // The first release did not write them.
  if (value === undefined) return
  if (!Array.isArray(value)) throw damagedRecordError(where, 'states is no list')
  for (const change of value) {
    const { state, at, run } = requireFields(change, where, 'a change of state')
    assertOneOf(state, known, where, 'state')
    assertDate(at, where, 'at')
    if (!isCount(run)) throw damagedRecordError(where, 'run is no number of a run')
  }
}

function requireFields(value: unknown, where: string, what: string): Fields {
  if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype)
    return value as Fields
  throw damagedRecordError(where, `${what} is no object`)
}

function assertTexts(fields: Fields, names: readonly string[], where: string): void {
  for (const name of names) if (typeof fields[name] !== 'string') throw damagedRecordError(where, `${name} is no text`)
}

function assertDate(value: unknown, where: string, what: string): void {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) throw damagedRecordError(where, `${what} is no date`)
  // Postgres does not take others back in the form in which dates are written, and would refuse all that is written with it.
  const year = value.getUTCFullYear()
  if (year < 1 || year > 9_999) throw damagedRecordError(where, `${what} is no date from year 1 to 9999`)
}

function assertOneOf(value: unknown, known: object, where: string, what: string): void {
  if (typeof value !== 'string' || !Object.hasOwn(known, value))
    throw damagedRecordError(where, `${what} is none of ${Object.keys(known).join(', ')}`)
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
