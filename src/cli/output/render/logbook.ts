/** Logbooks and their flows for people: progress, the durations of atoms, and failures with their causes. */
import { oneLine } from '../../../core/texts.ts'
import {
  type AtomView,
  type BookReport,
  type FailureView,
  formatDuration,
  type LogbookView,
} from '../../../views/index.ts'
import { type Screen, stateTone } from './paint.ts'
import { type Column, type Facts, factLines, renderTable } from './table.ts'
import { escapeUnprintable } from './text.ts'

export interface LogbookScreen {
  readonly screen: Screen
  /** The state of the job on the board, if it is known. */
  readonly jobState?: string | undefined
  /** The first word of the headline, `flow` for one flow of several in a logbook. */
  readonly what?: string
}

export function logbookLines(
  logbook: LogbookView | null,
  { screen, jobState, what = 'logbook' }: LogbookScreen,
): string[] {
  if (!logbook) return ['no logbook: no run of it has begun']
  const { uuid, name, flow, version, state, run, createdAt, updatedAt, milliseconds } = logbook
  const facts: Facts = [
    ['flow', `${flow} ${version}`],
    ['run', String(run)],
    ['created', createdAt.toISOString()],
    ['updated', updatedAt.toISOString()],
    ['took', milliseconds === undefined ? undefined : formatDuration(milliseconds)],
  ]
  const head = `${escapeUnprintable(`${what} ${uuid}  ${name}`)}  ${screen.paint(state, stateTone(state))}`
  const atoms =
    logbook.atoms.length === 0 ? [] : ['', ...renderTable(atomColumns(logbook.atoms), logbook.atoms, screen)]
  return [
    head,
    ...factLines(facts),
    ...atoms,
    ...failureLines(logbook.atoms, screen),
    ...unfinishedLines(logbook, jobState),
  ]
}

function atomColumns(atoms: readonly AtomView[]): readonly Column<AtomView>[] {
  const messageOf = ({ state, message }: AtomView) => (state === 'RUNNING' ? message : undefined)
  return [
    { title: 'TASK', value: ({ name }) => name, min: 8 },
    { title: 'STATE', value: (atom) => formatAtomState(atom), tone: ({ state }) => stateTone(state) },
    ...(atoms.some(messageOf) ? [{ title: 'MESSAGE', value: messageOf, min: 12 }] : []),
    {
      title: 'TOOK',
      value: ({ milliseconds }) => (milliseconds === undefined ? undefined : formatDuration(milliseconds)),
    },
    { title: 'UPDATED', value: ({ updatedAt }) => updatedAt.toISOString(), optional: true },
    { title: 'FAILURE', value: (atom) => formatShortFailure(atom), min: 16 },
  ]
}

/** Formats the state with the progress, if the atom reports it. */
export function formatAtomState({
  state,
  progress,
}: {
  readonly state: string
  readonly progress?: number | undefined
}): string {
  return state === 'RUNNING' && progress !== undefined ? `${state} ${Math.round(progress * 100)}%` : state
}

/** Returns the first line of the failure; the whole failure follows the table. */
function formatShortFailure({ failure, revertFailure }: AtomView): string | undefined {
  const both = [failure && failureHeadline(failure), revertFailure && `in revert: ${failureHeadline(revertFailure)}`]
  return both.filter((text) => text !== undefined).join('; ') || undefined
}

function failureLines(atoms: readonly AtomView[], screen: Screen): string[] {
  const lines = atoms.flatMap(({ name, failure, revertFailure }) => [
    ...(failure ? failureChainLines(failure, { title: `${name} failed`, screen }) : []),
    ...(revertFailure ? failureChainLines(revertFailure, { title: `reverting ${name} failed`, screen }) : []),
  ])
  return lines.length === 0 ? [] : ['', ...lines]
}

/** Returns the lines of a failure: each cause below its effect. */
export function failureChainLines(
  failure: FailureView,
  { title, screen }: { title: string; screen: Screen },
): string[] {
  return [screen.paint(escapeUnprintable(title), 'bad'), ...toChainLinks(failure, 1)]
}

function toChainLinks(failure: FailureView, depth: number): string[] {
  const how = depth === 1 ? '' : 'because of '
  const line = `${'  '.repeat(depth)}${how}${escapeUnprintable(failureHeadline(failure))}`
  return [line, ...(failure.causes ?? []).flatMap((cause) => toChainLinks(cause, depth + 1))]
}

function failureHeadline({ name, message }: FailureView): string {
  return oneLine(`${name}: ${message}`)
}

/** Returns the lines about a flow that looks as if it was running, and is not. */
function unfinishedLines({ state, atoms }: LogbookView, jobState: string | undefined): string[] {
  const deserted = state === 'RUNNING' && jobState === 'UNCLAIMED'
  if (state !== 'SUSPENDED' && !deserted) return []
  const why = deserted ? 'its last owner has ended' : 'its last owner was stopped'
  const halfDone = atoms.filter((atom) => atom.state === 'RUNNING' || atom.state === 'REVERTING')
  const again = halfDone.map((atom) => `; ${atom.name} was stopped in the middle and begins again`)
  return ['', escapeUnprintable(`no run is active: ${why}. The next run continues from here${again.join('')}`)]
}

export function logbookReport(book: BookReport, screen: Screen): string[] {
  const { uuid, name, createdAt, updatedAt, flows } = book
  const [only] = flows
  if (only && flows.length === 1) return logbookLines({ ...only, uuid, name, flow: only.name }, { screen })
  const facts = factLines([
    ['created', createdAt.toISOString()],
    ['updated', updatedAt.toISOString()],
    ['flows', String(flows.length)],
  ])
  const each = flows.flatMap((flow) => ['', ...logbookLines({ ...flow, flow: flow.name }, { screen, what: 'flow' })])
  return [escapeUnprintable(`logbook ${uuid}  ${name}`), ...facts, ...each]
}
