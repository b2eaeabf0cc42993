/** A logbook's flow, for people: how far it is, what each atom took, and what failed because of what. */
import { oneLine } from '../../core/texts.ts'
import type { AtomView, FailureView, LogbookView } from '../views.ts'
import { span } from './age.ts'
import { type Facts, lined } from './facts.ts'
import { toneOf } from './paint.ts'
import type { Screen } from './screen.ts'
import { type Column, table } from './table.ts'
import { printable } from './text.ts'

export interface LogbookScene {
  readonly screen: Screen
  /** Of the job on the board, where it is known. */
  readonly jobState?: string | undefined
  /** Of one among several in a logbook, flow. */
  readonly what?: string
}

export function logbookLines(
  logbook: LogbookView | null,
  { screen, jobState, what = 'logbook' }: LogbookScene,
): string[] {
  if (!logbook) return ['no logbook: no run of it has begun']
  const { uuid, name, flow, version, state, run, createdAt, updatedAt, milliseconds } = logbook
  const facts: Facts = [
    ['flow', `${flow} ${version}`],
    ['run', String(run)],
    ['created', createdAt.toISOString()],
    ['updated', updatedAt.toISOString()],
    ['took', milliseconds === undefined ? undefined : span(milliseconds)],
  ]
  const head = `${printable(`${what} ${uuid}  ${name}`)}  ${screen.paint(state, toneOf(state))}`
  const atoms = logbook.atoms.length === 0 ? [] : ['', ...table(COLUMNS, logbook.atoms, screen)]
  return [head, ...lined(facts), ...atoms, ...failureLines(logbook.atoms, screen), ...restLines(logbook, jobState)]
}

const COLUMNS: readonly Column<AtomView>[] = [
  { title: 'TASK', of: ({ name }) => name, min: 8 },
  { title: 'STATE', of: (atom) => standing(atom), tone: ({ state }) => toneOf(state) },
  { title: 'TOOK', of: ({ milliseconds }) => (milliseconds === undefined ? undefined : span(milliseconds)) },
  { title: 'UPDATED', of: ({ updatedAt }) => updatedAt.toISOString(), optional: true },
  { title: 'FAILURE', of: (atom) => shortly(atom), min: 16 },
]

/** With how far it is, where it says so. */
function standing({ state, progress }: AtomView): string {
  return state === 'RUNNING' && progress !== undefined ? `${state} ${Math.round(progress * 100)}%` : state
}

/** The rest stands below, whole. */
function shortly({ failure, revertFailure }: AtomView): string | undefined {
  const both = [failure && headline(failure), revertFailure && `in revert: ${headline(revertFailure)}`]
  return both.filter((text) => text !== undefined).join('; ') || undefined
}

function failureLines(atoms: readonly AtomView[], screen: Screen): string[] {
  const lines = atoms.flatMap(({ name, failure, revertFailure }) => [
    ...(failure ? chain(failure, { title: `${name} failed`, screen }) : []),
    ...(revertFailure ? chain(revertFailure, { title: `reverting ${name} failed`, screen }) : []),
  ])
  return lines.length === 0 ? [] : ['', ...lines]
}

/** Each cause under what it caused. */
export function chain(failure: FailureView, { title, screen }: { title: string; screen: Screen }): string[] {
  return [screen.paint(printable(title), 'bad'), ...links(failure, 1)]
}

function links(failure: FailureView, depth: number): string[] {
  const how = depth === 1 ? '' : 'because of '
  const line = `${'  '.repeat(depth)}${how}${printable(headline(failure))}`
  return [line, ...(failure.causes ?? []).flatMap((cause) => links(cause, depth + 1))]
}

function headline({ name, message }: FailureView): string {
  return oneLine(`${name}: ${message}`)
}

/** What looks like work under way, and is none. */
function restLines({ state, atoms }: LogbookView, jobState: string | undefined): string[] {
  const deserted = state === 'RUNNING' && jobState === 'UNCLAIMED'
  if (state !== 'SUSPENDED' && !deserted) return []
  const why = deserted ? 'its last owner is gone' : 'its last owner was told to stop'
  const halfDone = atoms.filter((atom) => atom.state === 'RUNNING' || atom.state === 'REVERTING')
  const again = halfDone.map((atom) => `; ${atom.name} was stopped in the middle and begins again`)
  return ['', printable(`the flow rests: ${why}. The next run goes on from here${again.join('')}`)]
}
