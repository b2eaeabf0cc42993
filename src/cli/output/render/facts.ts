/** Facts after a headline, one per line; facts without a value are omitted. */
import type { CancellationView } from '../../views/views.ts'
import { escapeUnprintable } from './text.ts'

export type Facts = readonly (readonly [label: string, value: string | undefined])[]

const LABEL_COLUMNS = 10

export function factLines(facts: Facts): string[] {
  return facts.flatMap(([label, value]) =>
    value === undefined ? [] : [escapeUnprintable(`  ${label.padEnd(LABEL_COLUMNS)}${value}`)],
  )
}

export function formatCancellation(cancellation: CancellationView | undefined): string | undefined {
  if (!cancellation) return undefined
  const { who, reason } = cancellation
  // This is the default reason of a cancellation.
  return reason === 'cancelled' ? `asked by ${who}` : `asked by ${who}: ${reason}`
}
