/** Colours for terminals that show them. */
import { escapeUnprintable } from './text.ts'

export type Tone = 'good' | 'bad' | 'busy' | 'odd' | 'quiet' | 'loud'

/**
 * A function that colours a text by its tone, and escapes control characters: no paint emits an unprintable character.
 */
export type Paint = (text: string, tone: Tone | undefined) => string

export const plainPaint: Paint = (text) => escapeUnprintable(text)

const CODES: Readonly<Record<Tone, readonly [on: number, off: number]>> = {
  good: [32, 39],
  bad: [31, 39],
  busy: [36, 39],
  odd: [33, 39],
  quiet: [2, 22],
  loud: [1, 22],
}

const ansiPaint: Paint = (text, tone) => {
  if (tone === undefined || text === '') return escapeUnprintable(text)
  const [on, off] = CODES[tone]
  return `\x1b[${on}m${escapeUnprintable(text)}\x1b[${off}m`
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
  failed: 'bad',
  died: 'bad',
}

export function stateTone(state: string | undefined): Tone | undefined {
  return state !== undefined && Object.hasOwn(TONES_BY_STATE, state) ? TONES_BY_STATE[state] : undefined
}
