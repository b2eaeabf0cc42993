/** Colours for terminals that show them. */

import { styleText } from 'node:util'
import type { CliContext } from '../../context.ts'
import { escapeUnprintable } from './text.ts'

export type Tone = 'good' | 'bad' | 'busy' | 'odd' | 'quiet' | 'loud'

/**
 * A function that colours a text by its tone, and escapes control characters: no paint emits an unprintable character.
 */
export type Paint = (text: string, tone: Tone | undefined) => string

export const plainPaint: Paint = (text) => escapeUnprintable(text)

const FORMATS = {
  good: 'green',
  bad: 'red',
  busy: 'cyan',
  odd: 'yellow',
  quiet: 'dim',
  loud: 'bold',
} as const satisfies Readonly<Record<Tone, string>>

const ansiPaint: Paint = (text, tone) => {
  const shown = escapeUnprintable(text)
  // Without this option Node decides by its own standard output, and not by the stream that is written to.
  return tone === undefined || shown === '' ? shown : styleText(FORMATS[tone], shown, { validateStream: false })
}

/**
 * Chooses the paint: colours on a terminal only. FORCE_COLOR forces them, or with 0 disables them; NO_COLOR disables
 * them if FORCE_COLOR is not set.
 */
export function choosePaint(output: { readonly columns: number | undefined }, env: ColorEnvironment): Paint {
  const { FORCE_COLOR: forced, NO_COLOR: none, TERM: terminal } = env
  if (forced !== undefined) return forced === '0' || forced === 'false' ? plainPaint : ansiPaint
  if (none || terminal === 'dumb' || output.columns === undefined) return plainPaint
  return ansiPaint
}

type ColorEnvironment = Readonly<Record<string, string | undefined>>

/** The tones of the states of jobs, flows, atoms, boards and conductors. */
const TONES_BY_STATE: Readonly<Record<string, Tone>> = {
  CLAIMED: 'busy',
  RUNNING: 'busy',
  RETRYING: 'busy',
  REVERTING: 'odd',
  REVERTED: 'odd',
  SUSPENDED: 'odd',
  SUSPENDING: 'odd',
  RESUMING: 'busy',
  COMPLETE: 'good',
  SUCCESS: 'good',
  TRASHED: 'bad',
  FAILURE: 'bad',
  REVERT_FAILURE: 'bad',
  IGNORE: 'quiet',
  PENDING: 'quiet',
  paused: 'odd',
  disconnected: 'bad',
  lost: 'bad',
  busy: 'busy',
  draining: 'odd',
  aborting: 'odd',
  unhealthy: 'bad',
  ok: 'good',
  warning: 'odd',
  error: 'bad',
  done: 'good',
  failed: 'bad',
  cancelled: 'odd',
  died: 'bad',
}

export function stateTone(state: string | undefined): Tone | undefined {
  return state !== undefined && Object.hasOwn(TONES_BY_STATE, state) ? TONES_BY_STATE[state] : undefined
}

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
