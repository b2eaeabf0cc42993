/** The status of a job as plain JSON data, without redacted values. */
import type { Attempt } from '../board/index.ts'
import type { Tracked } from '../conductor/index.ts'
import { jsonable, toJson } from '../core/json.ts'
import { defined } from '../core/options.ts'
import type { Redactor } from '../core/redaction.ts'
import { shortenText } from '../core/texts.ts'
import type { SavedCheckpoint } from '../persistence/index.ts'
import { type CancellationView, cancellationView } from './job-view.ts'
import { type FailureView, failureView } from './logbook-view.ts'
import { type WaitingView, waitingView } from './open-job.ts'

/** The status of a job. Other properties are present if the status has them, see `track`. */
export interface TrackedView {
  readonly uuid: string
  readonly status: Tracked['status']
  readonly tasks?: Readonly<Record<string, string>>
  /** The progress from 0 to 1 of running tasks that report it. */
  readonly progress?: Readonly<Record<string, number>>
  /** The messages of their last progress reports. */
  readonly messages?: Readonly<Record<string, string>>
  /** The checkpoints of tasks, by their names. */
  readonly checkpoints?: Readonly<Record<string, SavedCheckpoint>>
  readonly owner?: string
  readonly run?: number
  readonly runs?: number
  readonly since?: Date
  readonly at?: Date
  readonly by?: string
  readonly reason?: string
  /** The requester of the cancellation, and the reason. */
  readonly cancellation?: CancellationView
  /** The newest run of a job that waits, and why it has ended: without `ended`, its owner was lost. */
  readonly lastRun?: Attempt
  /** The cause for which the job waits. */
  readonly waitingFor?: WaitingView
  /** The results by the tasks' names. */
  readonly results?: Readonly<Record<string, unknown>>
  readonly failures?: readonly FailureView[]
}

export function trackedView(tracked: Tracked, redaction: Redactor): TrackedView {
  return tracked.status === 'unknown'
    ? tracked
    : { ...statusView(tracked, redaction), ...reportsView(tracked, redaction) }
}

type Known = Exclude<Tracked, { readonly status: 'unknown' }>

/** Returns what tasks have reported of themselves. */
function reportsView(
  { messages, checkpoints }: Known,
  redaction: Redactor,
): Pick<TrackedView, 'messages' | 'checkpoints'> {
  return defined({
    messages: messages && mapValues(messages, (message) => redaction.text(message)),
    checkpoints: checkpoints && mapValues(checkpoints, (saved) => checkpointView(saved, redaction)),
  })
}

/** Returns a checkpoint as plain JSON data, without redacted values. */
export function checkpointView({ value, at }: SavedCheckpoint, redaction: Redactor): SavedCheckpoint {
  return { value: jsonable(redaction.value(value)), at }
}

/** Formats the view of a checkpoint for one line; `--json` prints the whole one. */
export function formatCheckpoint({ value }: Pick<SavedCheckpoint, 'value'>): string {
  // Somebody else may have written the record: `undefined` is no JSON.
  return shortenText(toJson(value))
}

function mapValues<T, R>(values: Readonly<Record<string, T>>, map: (value: T) => R): Readonly<Record<string, R>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]))
}

function statusView(tracked: Known, redaction: Redactor): TrackedView {
  switch (tracked.status) {
    case 'waiting': {
      const { waitingFor, lastRun, ...rest } = pendingView(tracked, redaction)
      return {
        ...rest,
        ...defined({
          lastRun: lastRun && {
            ...lastRun,
            ...defined({ reason: lastRun.reason && redaction.text(lastRun.reason) }),
          },
          waitingFor: waitingFor && redaction.texts(waitingView(waitingFor)),
        }),
      }
    }
    case 'running':
      return pendingView(tracked, redaction)
    case 'done': {
      const { results, ...rest } = tracked
      return { ...rest, results: redactResults(results, redaction) }
    }
    case 'failed':
    case 'trashed': {
      const { failures, ...rest } = tracked
      const shown = { ...rest, failures: failures.map((failure) => failureView(failure, redaction)) }
      return 'reason' in shown ? { ...shown, reason: redaction.text(shown.reason) } : shown
    }
  }
}

function pendingView<T extends { readonly cancellation?: CancellationView }>(pending: T, redaction: Redactor): T {
  const { cancellation } = pending
  return cancellation ? { ...pending, cancellation: cancellationView(cancellation, redaction) } : pending
}

/** Returns the results of a flow as JSON can encode them, with the values of the redacted keys hidden. */
export function redactResults(results: object, redaction: Redactor): Record<string, unknown> {
  return mapValues(redaction.value(results) as Record<string, unknown>, jsonable)
}
