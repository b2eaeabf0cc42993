/** Where a job stands, as plain data that JSON can say, without what is to be hidden. */
import type { Tracked } from '../../conductor/index.ts'
import type { Redactor } from '../../core/redaction.ts'
import { type CancellationView, cancellationView, type FailureView, failureView } from './views.ts'

/** What follows is there where the status has it, see `track`. */
export interface TrackedView {
  readonly uuid: string
  readonly status: Tracked['status']
  readonly tasks?: Readonly<Record<string, string>>
  /** How far tasks are that run and say so, from 0 to 1. */
  readonly progress?: Readonly<Record<string, number>>
  readonly owner?: string
  readonly run?: number
  readonly runs?: number
  readonly since?: Date
  readonly at?: Date
  readonly by?: string
  readonly reason?: string
  /** Who has asked for it to be given up, and why. */
  readonly cancellation?: CancellationView
  /** Says what it waits for. */
  readonly waitingFor?: { readonly kind: string; readonly text: string }
  /** By the tasks' names. */
  readonly results?: Readonly<Record<string, unknown>>
  readonly failures?: readonly FailureView[]
}

export function trackedView(tracked: Tracked, redaction: Redactor): TrackedView {
  switch (tracked.status) {
    case 'waiting': {
      const { waitingFor, ...rest } = pendingView(tracked, redaction)
      return waitingFor ? { ...rest, waitingFor: { kind: waitingFor.kind, text: waitingFor.text } } : rest
    }
    case 'running':
      return pendingView(tracked, redaction)
    case 'done': {
      const { results, ...rest } = tracked
      const shown = Object.entries(results).map(([task, result]) => [task, jsonable(redaction.value(result))])
      return { ...rest, results: Object.fromEntries(shown) }
    }
    case 'failed':
    case 'trashed': {
      const { failures, ...rest } = tracked
      const shown = { ...rest, failures: failures.map((failure) => failureView(failure, redaction)) }
      return 'reason' in shown ? { ...shown, reason: redaction.text(shown.reason) } : shown
    }
    default:
      return tracked
  }
}

function pendingView<T extends { readonly cancellation?: CancellationView }>(pending: T, redaction: Redactor): T {
  const { cancellation } = pending
  return cancellation ? { ...pending, cancellation: cancellationView(cancellation, redaction) } : pending
}

/** What JSON has no way to say: large integers as text, bytes as base64. */
export function jsonable(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (Array.isArray(value)) return value.map(jsonable)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, jsonable(item)]))
}
