/**
 * Checks records that are read from storage to which others can write. A record that this library cannot have written
 * is damaged: the reader receives one kind of error, whose class says that only this record is concerned.
 */
import { toFields } from '../core/codec.ts'
import { isDate, StorageFailure } from '../core/errors.ts'
import { parseFailure } from '../core/failure.ts'
import { defined } from '../core/options.ts'
import { ATOM_TRANSITIONS, FLOW_TRANSITIONS, type Intention } from '../core/states.ts'
import { shortenText } from '../core/texts.ts'
import type { OmittedAttempts } from '../flow/index.ts'
import type { RecordedTransition } from './flow-record.ts'
import type { AtomDetail, BookDetail, FlowDetail, SavedCheckpoint } from './models.ts'

type Fields = Readonly<Record<string, unknown>>

const INTENTIONS: Readonly<Record<Intention, true>> = { EXECUTE: true, REVERT: true, RETRY: true, IGNORE: true }
const ATOM_KINDS: Readonly<Record<AtomDetail['kind'], true>> = { task: true, retry: true }

/** Checks a book. @throws StorageFailure when it is not a book */
export function checkBook(value: unknown, where: string): BookDetail {
  const book = requireFields(value, where, 'the book')
  assertTexts(book, ['uuid', 'name'], where)
  requireFields(book['meta'], where, 'meta')
  assertDate(book['createdAt'], where, 'createdAt')
  // The first release did not write this field.
  if (book['updatedAt'] === undefined) return { ...(value as BookDetail), updatedAt: book['createdAt'] as Date }
  assertDate(book['updatedAt'], where, 'updatedAt')
  return value as BookDetail
}

/** Checks a flow without its atoms. @throws StorageFailure */
export function checkFlow(value: unknown, where: string): Omit<FlowDetail, 'atoms'> {
  const flow = requireFields(value, where, 'the flow')
  assertTexts(flow, ['uuid', 'name', 'version', 'claim'], where)
  requireFields(flow['meta'], where, 'meta')
  assertOneOf(flow['state'], FLOW_TRANSITIONS, where, 'state')
  if (!isCount(flow['run'])) throw damagedRecordError(where, 'run is not a run number')
  assertDate(flow['createdAt'], where, 'createdAt')
  assertDate(flow['updatedAt'], where, 'updatedAt')
  assertStates(flow['states'], FLOW_TRANSITIONS, where)
  return value as Omit<FlowDetail, 'atoms'>
}

/** Checks a flow with its atoms. @throws StorageFailure */
export function checkFlowWithAtoms(value: unknown, where: string): FlowDetail {
  const flow = checkFlow(value, where)
  const { atoms }: { readonly atoms?: unknown } = flow as Fields
  if (!Array.isArray(atoms)) throw damagedRecordError(where, 'atoms is not a list')
  return { ...flow, atoms: atoms.map((atom) => checkAtom(atom, where)) }
}

/** Checks an atom; its failures are cut to the limits of any failure. @throws StorageFailure */
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

/** Checks the failures of an atom, the history of a retry, and what a task has reported of itself. @throws StorageFailure */
export function checkSecrets(
  { failure, revertFailure, history, progressMessage, checkpoint }: Fields,
  where: string,
): Pick<AtomDetail, 'failure' | 'revertFailure' | 'history' | 'progressMessage' | 'checkpoint'> {
  if (progressMessage !== undefined && typeof progressMessage !== 'string')
    throw damagedRecordError(where, 'progressMessage is not a string')
  return defined({
    failure: parseFailure(failure),
    revertFailure: parseFailure(revertFailure),
    history: history === undefined ? undefined : checkHistory(history, where),
    progressMessage,
    checkpoint: checkpoint === undefined ? undefined : checkCheckpoint(checkpoint, where),
  })
}

/** Checks a transition. @throws StorageFailure when it is not a transition */
export function checkTransition(value: unknown, where: string): RecordedTransition {
  const { at, state, meta, atoms } = requireFields(value, where, 'a transition')
  assertDate(at, where, 'at')
  if (state !== undefined) assertOneOf(state, FLOW_TRANSITIONS, where, 'state')
  if (meta !== undefined) requireFields(meta, where, 'meta')
  if (atoms === undefined) return value as RecordedTransition
  if (!Array.isArray(atoms)) throw damagedRecordError(where, 'atoms is not a list')
  return { ...(value as RecordedTransition), atoms: atoms.map((atom) => checkAtom(atom, where)) }
}

/** Returns the error for a record that this library cannot have written. */
export function damagedRecordError(where: string, why: string, cause?: unknown): StorageFailure {
  const how = 'restore it or remove it'
  return new StorageFailure(`${where} is damaged: ${shortenText(why)}; ${how}`, { cause })
}

function checkHistory(value: unknown, where: string): NonNullable<AtomDetail['history']> {
  if (!Array.isArray(value)) throw damagedRecordError(where, 'history is not a list')
  return value.map((attempt) => {
    const { value: tried, failures, omitted } = requireFields(attempt, where, 'an attempt')
    if (!Array.isArray(failures)) throw damagedRecordError(where, 'failures is not a list')
    return {
      ...(omitted === undefined ? {} : { omitted: checkOmitted(omitted, where) }),
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

/** The maximum number of attempts that a record may claim: a list of all their values is made when a retry asks for it. */
const MAX_ATTEMPTS = 10_000_000

function checkOmitted(value: unknown, where: string): OmittedAttempts {
  const { values, errors } = requireFields(value, where, 'omitted')
  if (!Array.isArray(values) || !Array.isArray(errors)) throw damagedRecordError(where, 'omitted has no lists')
  let left = MAX_ATTEMPTS
  for (const run of values) {
    const { count, step } = requireFields(run, where, 'a value')
    if (!Number.isSafeInteger(count) || Number(count) < 1 || (step !== undefined && step !== 1))
      throw damagedRecordError(where, 'a value has no count')
    left -= Number(count)
  }
  const isCount = (each: unknown) => Array.isArray(each) && typeof each[0] === 'string' && typeof each[1] === 'number'
  if (left < 0 || !errors.every(isCount)) throw damagedRecordError(where, 'omitted has invalid counts')
  return { values, errors }
}

function checkCheckpoint(value: unknown, where: string): SavedCheckpoint {
  const { at, value: saved } = requireFields(value, where, 'checkpoint')
  assertDate(at, where, 'the time of the checkpoint')
  return { value: saved, at }
}

function assertSeal(value: unknown, where: string): void {
  const { by, bytes } = requireFields(value, where, 'sealed')
  const isNamed = Array.isArray(by) && by.every((name) => typeof name === 'string')
  if (!isNamed || !(bytes instanceof Uint8Array))
    throw damagedRecordError(where, 'sealed names no codecs, or has no bytes')
}

function assertStates(value: unknown, known: object, where: string): void {
  // The first release did not write this field.
  if (value === undefined) return
  if (!Array.isArray(value)) throw damagedRecordError(where, 'states is not a list')
  for (const change of value) {
    const { state, at, run } = requireFields(change, where, 'a change of state')
    assertOneOf(state, known, where, 'state')
    assertDate(at, where, 'at')
    if (!isCount(run)) throw damagedRecordError(where, 'run is not a run number')
  }
}

function requireFields(value: unknown, where: string, what: string): Fields {
  const fields = toFields(value)
  if (fields) return fields
  throw damagedRecordError(where, `${what} is not an object`)
}

function assertTexts(fields: Fields, names: readonly string[], where: string): void {
  for (const name of names)
    if (typeof fields[name] !== 'string') throw damagedRecordError(where, `${name} is not a string`)
}

function assertDate(value: unknown, where: string, what: string): asserts value is Date {
  if (!isDate(value) || Number.isNaN(value.getTime())) throw damagedRecordError(where, `${what} is not a date`)
  // Postgres cannot read other years in the format in which dates are written, and would refuse the whole group.
  const year = value.getUTCFullYear()
  if (year < 1 || year > 9_999) throw damagedRecordError(where, `${what} is not a date from year 1 to 9999`)
}

function assertOneOf(value: unknown, known: object, where: string, what: string): void {
  if (typeof value !== 'string' || !Object.hasOwn(known, value))
    throw damagedRecordError(where, `${what} is not one of ${Object.keys(known).join(', ')}`)
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
