/** What the doctor found, for people. */
import type { Finding, Severity } from '../doctor/finding.ts'
import { toneOf } from './paint.ts'
import type { Screen } from './screen.ts'
import { printable, wrapped } from './text.ts'

const SEVERITY = 9
const ABOUT = 12
/** Narrower than this nothing can be read. */
const LEAST_TEXT = 30

export function findingLines({ severity, about, text, advice }: Finding, { width, paint }: Screen): string[] {
  const indent = SEVERITY + ABOUT
  const room = width === undefined ? undefined : Math.max(LEAST_TEXT, width - indent)
  const lines = wrapped(printable(text), room)
  const advised = advice === undefined ? [] : wrapped(`-> ${printable(advice)}`, room)
  const head = `${paint(severity, toneOf(severity))}${' '.repeat(SEVERITY - severity.length)}${about.padEnd(ABOUT)}`
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
