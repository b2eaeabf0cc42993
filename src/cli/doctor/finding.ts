/** The doctor's findings. */

import { wrap } from '../output/render/columns.ts'
import { type Screen, stateTone } from '../output/render/paint.ts'
import { escapeUnprintable } from '../output/render/text.ts'

export type Severity = 'ok' | 'warning' | 'error'

export interface Finding {
  readonly severity: Severity
  /** The subject, in a word. */
  readonly about: string
  readonly text: string
  /** The advice: how to solve the problem. */
  readonly advice?: string
}

export function okFinding(about: string, text: string): Finding {
  return { severity: 'ok', about, text }
}

export function warningFinding(about: string, text: string, advice: string): Finding {
  return { severity: 'warning', about, text, advice }
}

export function errorFinding(about: string, text: string, advice: string): Finding {
  return { severity: 'error', about, text, advice }
}

/** The advice where a server refuses this client. */
export const RIGHTS_ADVICE =
  'give user:password of a user with these rights, as auth in jobboard.yaml or in JOBBOARD_ZOOKEEPER_AUTH, or change the ACL'

/** The number of things of one kind that are named in a finding. */
const MAX_NAMED = 3

/** Formats names as `a, b, c and 4 more`. */
export function listSome(names: readonly string[]): string {
  const rest = names.length - MAX_NAMED
  return names.slice(0, MAX_NAMED).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

/** Formats a count as `1 job` or `3 jobs`. */
export function formatCount(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/**
 * The tolerated difference of clocks. Claims are safe whatever the clocks say; delays and ages go by the servers'
 * clock.
 */
const TOLERATED_SKEW_MS = 2_000

/**
 * Returns the finding about the clocks.
 *
 * @param ahead how far the servers' clock is ahead of this machine's, in milliseconds: between the first and the second
 */
export function clockFinding([least, most]: readonly [least: number, most: number]): Finding {
  const off = least > 0 ? least : most < 0 ? most : 0
  const seconds = Math.abs(Math.round(off / 100) / 10)
  if (Math.abs(off) <= TOLERATED_SKEW_MS) return okFinding('clock', "the servers' clock agrees with this machine's")
  const how = off > 0 ? 'ahead of' : 'behind'
  return warningFinding(
    'clock',
    `the servers' clock is ${seconds}s ${how} this machine's; delays go by theirs, displayed ages by both`,
    'synchronize all clocks, for example with NTP',
  )
}

const SEVERITY_COLUMNS = 9
const ABOUT_COLUMNS = 12
/** The minimum width of the text: a narrower column is not readable. */
const MIN_TEXT_COLUMNS = 30

export function findingLines({ severity, about, text, advice }: Finding, { width, paint }: Screen): string[] {
  const indent = SEVERITY_COLUMNS + ABOUT_COLUMNS
  const room = width === undefined ? undefined : Math.max(MIN_TEXT_COLUMNS, width - indent)
  const lines = wrap(escapeUnprintable(text), room)
  const advised = advice === undefined ? [] : wrap(`-> ${escapeUnprintable(advice)}`, room)
  const head = `${paint(severity, stateTone(severity))}${' '.repeat(SEVERITY_COLUMNS - severity.length)}${about.padEnd(ABOUT_COLUMNS)}`
  return [...lines, ...advised].map((line, index) => (index === 0 ? `${head}${line}` : `${' '.repeat(indent)}${line}`))
}

export function verdictLine(counts: Readonly<Record<Severity, number>>, { paint }: Screen): string {
  const { warning, error } = counts
  if (warning + error === 0) return paint('all is well', 'good')
  const parts = [
    ...(error > 0 ? [paint(`${error} ${error === 1 ? 'error' : 'errors'}`, 'bad')] : []),
    ...(warning > 0 ? [paint(`${warning} ${warning === 1 ? 'warning' : 'warnings'}`, 'odd')] : []),
  ]
  return parts.join(', ')
}
