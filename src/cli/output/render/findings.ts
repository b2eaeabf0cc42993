/** The doctor's findings for people. */
import type { Finding, Severity } from '../../doctor/finding.ts'
import { stateTone } from './paint.ts'
import type { Screen } from './screen.ts'
import { escapeUnprintable, wrap } from './text.ts'

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
