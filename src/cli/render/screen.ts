/** What results are shown on. */
import type { CliContext } from '../context.ts'
import { type Paint, paintFor } from './paint.ts'

export interface Screen {
  /** Undefined shows everything whole. */
  readonly width: number | undefined
  readonly now: Date
  readonly paint: Paint
}

export function screenOf({ stdout, env }: Pick<CliContext, 'stdout' | 'env'>): Screen {
  return { width: stdout.columns, now: new Date(), paint: paintFor(stdout, env) }
}
