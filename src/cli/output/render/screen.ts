/** What results are shown on. */
import type { CliContext } from '../../context.ts'
import { choosePaint, type Paint } from './paint.ts'

export interface Screen {
  /** Undefined shows everything whole. */
  readonly width: number | undefined
  readonly now: Date
  readonly paint: Paint
}

export function toScreen({ stdout, env }: Pick<CliContext, 'stdout' | 'env'>): Screen {
  // A terminal that does not know how wide it is says 0.
  return { width: stdout.columns || undefined, now: new Date(), paint: choosePaint(stdout, env) }
}
