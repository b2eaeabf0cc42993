/**
 * Checks what comes out of storage to which others can write. A record that is not what this library writes is damaged: whoever
 * reads it is told so by one error, whose class says that only this record is concerned.
 */
import { StorageFailure } from '../core/errors.ts'
import { readFailure } from '../core/read-failure.ts'
import { ATOM_TRANSITIONS, FLOW_TRANSITIONS, type Intention } from '../core/states.ts'
import { shortened } from '../core/texts.ts'
import type { RecordedTransition } from './flow-image.ts'
import type { AtomDetail, BookDetail, FlowDetail } from './models.ts'

type Fields = Readonly<Record<string, unknown>>

const INTENTIONS: Readonly<Record<Intention, true>> = { EXECUTE: true, REVERT: true, RETRY: true, IGNORE: true }
const KINDS: Readonly<Record<AtomDetail['kind'], true>> = { task: true, retry: true }

/** @throws StorageFailure for what is no book */
export function checkedBook(value: unknown, where: string): BookDetail {
  const book = fieldsOf(value, where, 'the book')
  assertTexts(book, ['uuid', 'name'], where)
  fieldsOf(book['meta'], where, 'meta')
  assertDate(book['createdAt'], where, 'createdAt')
  // The first release did not write it.
  if (book['updatedAt'] === undefined) return { ...(value as BookDetail), updatedAt: book['createdAt'] as Date }
  assertDate(book['updatedAt'], where, 'updatedAt')
  return value as BookDetail
}

/** Checks a flow without looking at its atoms. @throws StorageFailure */
export function checkedFlow(value: unknown, where: string): Omit<FlowDetail, 'atoms'> {
  const flow = fieldsOf(value, where, 'the flow')
  assertTexts(flow, ['uuid', 'name', 'version', 'claim'], where)
  fieldsOf(flow['meta'], where, 'meta')
  assertOneOf(flow['state'], FLOW_TRANSITIONS, where, 'state')
  if (!isCount(flow['run'])) throw damaged(where, 'run is no number of a run')
  assertDate(flow['createdAt'], where, 'createdAt')
  assertDate(flow['updatedAt'], where, 'updatedAt')
  assertStates(flow['states'], FLOW_TRANSITIONS, where)
  return value as Omit<FlowDetail, 'atoms'>
}

/** Checks a flow with its atoms. @throws StorageFailure */
export function checkedWholeFlow(value: unknown, where: string): FlowDetail {
  const flow = checkedFlow(value, where)
  const { atoms }: { readonly atoms?: unknown } = flow as Fields
  if (!Array.isArray(atoms)) throw damaged(where, 'atoms is no list')
  return { ...flow, atoms: atoms.map((atom) => checkedAtom(atom, where)) }
}

/** Checks an atom; its failures are cut to what is kept of any failure. @throws StorageFailure */
export function checkedAtom(value: unknown, where: string): AtomDetail {
  const atom = fieldsOf(value, where, 'an atom')
  assertTexts(atom, ['name', 'version'], where)
  assertOneOf(atom['kind'], KINDS, where, 'kind')
  assertOneOf(atom['state'], ATOM_TRANSITIONS, where, 'state')
  assertOneOf(atom['intention'], INTENTIONS, where, 'intention')
  fieldsOf(atom['meta'], where, 'meta')
  assertDate(atom['updatedAt'], where, 'updatedAt')
  if (atom['createdAt'] !== undefined) assertDate(atom['createdAt'], where, 'createdAt')
  assertStates(atom['states'], ATOM_TRANSITIONS, where)
  if (atom['sealed'] !== undefined) assertSeal(atom['sealed'], where)
  return { ...(value as AtomDetail), ...checkedSecrets(atom, where) }
}

/** Checks what tasks have thrown, and what retries have tried. @throws StorageFailure */
export function checkedSecrets(
  { failure, revertFailure, history }: Fields,
  where: string,
): Pick<AtomDetail, 'failure' | 'revertFailure' | 'history'> {
  const [failed, revertFailed] = [readFailure(failure), readFailure(revertFailure)]
  return {
    ...(failed ? { failure: failed } : {}),
    ...(revertFailed ? { revertFailure: revertFailed } : {}),
    ...(history === undefined ? {} : { history: checkedHistory(history, where) }),
  }
}

/** @throws StorageFailure for what is no transition */
export function checkedTransition(value: unknown, where: string): RecordedTransition {
  const { at, state, meta, atoms } = fieldsOf(value, where, 'a transition')
  assertDate(at, where, 'at')
  if (state !== undefined) assertOneOf(state, FLOW_TRANSITIONS, where, 'state')
  if (meta !== undefined) fieldsOf(meta, where, 'meta')
  if (atoms === undefined) return value as RecordedTransition
  if (!Array.isArray(atoms)) throw damaged(where, 'atoms is no list')
  return { ...(value as RecordedTransition), atoms: atoms.map((atom) => checkedAtom(atom, where)) }
}

/** The error for a record that cannot be what this library has written. */
export function damaged(where: string, why: string, cause?: unknown): StorageFailure {
  const how = 'restore it or remove it'
  return new StorageFailure(`${where} is damaged: ${shortened(why)}; ${how}`, { cause })
}

function checkedHistory(value: unknown, where: string): NonNullable<AtomDetail['history']> {
  if (!Array.isArray(value)) throw damaged(where, 'history is no list')
  return value.map((attempt) => {
    const { value: tried, failures } = fieldsOf(attempt, where, 'an attempt')
    if (!Array.isArray(failures)) throw damaged(where, 'failures is no list')
    return {
      value: tried,
      failures: failures.map((each) => {
        const { atom, failure } = fieldsOf(each, where, 'a failure')
        const read = readFailure(failure)
        if (typeof atom !== 'string' || !read) throw damaged(where, 'a failure names no atom')
        return { atom, failure: read }
      }),
    }
  })
}

function assertSeal(value: unknown, where: string): void {
  const { by, bytes } = fieldsOf(value, where, 'sealed')
  const isNamed = Array.isArray(by) && by.every((name) => typeof name === 'string')
  if (!isNamed || !(bytes instanceof Uint8Array)) throw damaged(where, 'sealed names no codecs, or has no bytes')
}

function assertStates(value: unknown, known: object, where: string): void {
  // The first release did not write them.
  if (value === undefined) return
  if (!Array.isArray(value)) throw damaged(where, 'states is no list')
  for (const change of value) {
    const { state, at, run } = fieldsOf(change, where, 'a change of state')
    assertOneOf(state, known, where, 'state')
    assertDate(at, where, 'at')
    if (!isCount(run)) throw damaged(where, 'run is no number of a run')
  }
}

function fieldsOf(value: unknown, where: string, what: string): Fields {
  if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype)
    return value as Fields
  throw damaged(where, `${what} is no object`)
}

function assertTexts(fields: Fields, names: readonly string[], where: string): void {
  for (const name of names) if (typeof fields[name] !== 'string') throw damaged(where, `${name} is no text`)
}

function assertDate(value: unknown, where: string, what: string): void {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) throw damaged(where, `${what} is no date`)
  // Postgres does not take others back in the form in which dates are written, and would refuse all that is written with it.
  const year = value.getUTCFullYear()
  if (year < 1 || year > 9_999) throw damaged(where, `${what} is no date from year 1 to 9999`)
}

function assertOneOf(value: unknown, known: object, where: string, what: string): void {
  if (typeof value !== 'string' || !Object.hasOwn(known, value))
    throw damaged(where, `${what} is none of ${Object.keys(known).join(', ')}`)
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
