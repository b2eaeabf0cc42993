/** Logbooks with their flows and atoms, and failures, as plain data. They have no results: `track` shows them. */
import { type Failure, parseFailure } from '../core/failure.ts'
import type { Redactor } from '../core/redaction.ts'
import { type AtomState, type FlowState, isFinished } from '../core/states.ts'
import type { AtomDetail, FlowDetail, LogBook } from '../persistence/index.ts'
import { measureLastRun, measureWholeRun, type RunDuration } from './duration.ts'

export interface FailureView {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly causes?: readonly FailureView[]
}

export interface AtomView extends RunDuration {
  readonly name: string
  readonly kind: AtomDetail['kind']
  readonly state: AtomState
  /** The progress from 0 to 1 of a task that reports it. */
  readonly progress?: number
  /** The text of its last progress report. */
  readonly message?: string
  readonly updatedAt: Date
  readonly failure?: FailureView
  readonly revertFailure?: FailureView
}

export interface LogbookView extends RunDuration {
  readonly uuid: string
  readonly name: string
  readonly flow: string
  readonly version: string
  readonly state: FlowState
  readonly run: number
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly atoms: readonly AtomView[]
}

export interface FlowView {
  /** The uuid of the job that ran it. */
  readonly uuid: string
  readonly name: string
  readonly version: string
  readonly state: FlowState
  readonly run: number
  readonly updatedAt: Date
}

/** A logbook in a list. */
export interface BookView {
  readonly uuid: string
  readonly name: string
  readonly createdAt: Date
  /** The time of the newest change in it. */
  readonly updatedAt: Date
  readonly flows: readonly FlowView[]
}

/** A logbook in a report. */
export interface BookReport extends Omit<BookView, 'flows'> {
  readonly flows: readonly (Omit<LogbookView, 'uuid' | 'name'> & Pick<FlowView, 'uuid' | 'name'>)[]
}

export function bookView(book: LogBook): BookView {
  const flows = book.flows.map(({ uuid, name, version, state, run, updatedAt }) => {
    return { uuid, name, version, state, run, updatedAt }
  })
  return { ...toBookFacts(book), flows }
}

export function bookReport(book: LogBook, redaction: Redactor): BookReport {
  return { ...toBookFacts(book), flows: book.flows.map((flow) => flowReport(book, flow, redaction)) }
}

function flowReport(book: LogBook, flow: FlowDetail, redaction: Redactor): BookReport['flows'][number] {
  return { ...logbookView(book, flow, redaction), uuid: flow.uuid, name: flow.name }
}

function toBookFacts({ uuid, name, createdAt, updatedAt, flows }: LogBook): Omit<BookView, 'flows'> {
  const newest = flows.reduce((newest, flow) => Math.max(newest, flow.updatedAt.getTime()), updatedAt.getTime())
  return { uuid, name, createdAt, updatedAt: new Date(newest) }
}

export function logbookView(book: LogBook, flow: FlowDetail, redaction: Redactor): LogbookView {
  const { name, version, state, run, createdAt, updatedAt } = flow
  const atoms = flow.atoms.map((atom) => atomView(atom, redaction))
  const took = measureWholeRun(flow.states, { over: isFinished(state) })
  return { uuid: book.uuid, name: book.name, flow: name, version, state, run, createdAt, updatedAt, ...took, atoms }
}

function atomView(
  { name, kind, state, states, meta, updatedAt, progressMessage, failure, revertFailure }: AtomDetail,
  redaction: Redactor,
): AtomView {
  return {
    name,
    kind,
    state,
    updatedAt,
    ...(typeof meta['progress'] === 'number' ? { progress: meta['progress'] } : {}),
    ...(progressMessage === undefined ? {} : { message: redaction.text(progressMessage) }),
    ...measureLastRun(states),
    ...(failure ? { failure: failureView(failure, redaction) } : {}),
    ...(revertFailure ? { revertFailure: failureView(revertFailure, redaction) } : {}),
  }
}

/** Returns a failure without the stack, which is long and shows internals. */
export function failureView(failure: Failure, redaction: Redactor): FailureView {
  // The failure was read from a logbook or the trash, which others write, too: a malformed one must not hide the rest.
  return toFailureView(parseFailure(failure) ?? { name: 'Error', message: 'a failure that cannot be read' }, redaction)
}

function toFailureView({ name, message, code, causes }: Failure, redaction: Redactor): FailureView {
  return {
    name,
    message: redaction.text(message),
    ...(code === undefined ? {} : { code }),
    ...(causes ? { causes: causes.map((cause) => toFailureView(cause, redaction)) } : {}),
  }
}
