/** What a flow has provided, a line for each. */
import { printable, printableJson, widthOf } from './text.ts'

export function resultLines(results: Readonly<Record<string, unknown>>): string[] {
  const entries = Object.entries(results).filter(([, value]) => value !== undefined)
  const width = Math.max(0, ...entries.map(([name]) => widthOf(printable(name))))
  return entries.map(([name, value]) => {
    const shown = printable(name)
    return `${shown}${' '.repeat(width - widthOf(shown))}  ${printableJson(value)}`
  })
}
