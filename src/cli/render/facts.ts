/** Facts under a headline, one a line; those without a value are left out. */
import type { CancellationView } from '../views.ts'
import { printable } from './text.ts'

export type Facts = readonly (readonly [label: string, value: string | undefined])[]

const LABEL = 10

export function lined(facts: Facts): string[] {
  return facts.flatMap(([label, value]) => (value === undefined ? [] : [printable(`  ${label.padEnd(LABEL)}${value}`)]))
}

export function cancelledBy(cancellation: CancellationView | undefined): string | undefined {
  if (!cancellation) return undefined
  const { who, reason } = cancellation
  // What a cancel says whose reason nobody gave.
  return reason === 'cancelled' ? `asked by ${who}` : `asked by ${who}: ${reason}`
}
