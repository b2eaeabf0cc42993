/** The results of a flow, a line for each. */
import { displayWidth, escapeUnprintable, toPrintableJson } from './text.ts'

export function resultLines(results: Readonly<Record<string, unknown>>): string[] {
  const entries = Object.entries(results).filter(([, value]) => value !== undefined)
  const width = Math.max(0, ...entries.map(([name]) => displayWidth(escapeUnprintable(name))))
  return entries.map(([name, value]) => {
    const shown = escapeUnprintable(name)
    return `${shown}${' '.repeat(width - displayWidth(shown))}  ${toPrintableJson(value)}`
  })
}
