/** The properties of the screen on which results are shown. */
import type { CliContext } from '../../context.ts'
import { choosePaint, type Paint } from './paint.ts'

export interface Screen {
  /** The width in columns; undefined shows everything without truncation. */
  readonly width: number | undefined
  readonly now: Date
  readonly paint: Paint
}

export function toScreen({ stdout, env }: Pick<CliContext, 'stdout' | 'env'>): Screen {
  // A terminal that does not know its width reports 0.
  return { width: stdout.columns || undefined, now: new Date(), paint: choosePaint(stdout, env) }
}
