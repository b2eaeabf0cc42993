/** A logbook as plain JSON data. It has no results: `track` shows them. */
import type { Redactor } from '../../core/redaction.ts'
import type { FlowState } from '../../core/states.ts'
import type { FlowDetail, LogBook } from '../../persistence/index.ts'
import { type LogbookView, logbookView } from '../../views/index.ts'

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
