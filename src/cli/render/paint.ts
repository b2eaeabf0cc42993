/** Colours, for whoever looks at a terminal that shows them. */
import { printable } from './text.ts'

export type Tone = 'good' | 'bad' | 'busy' | 'odd' | 'quiet' | 'loud'

/** Gives a text its tone, and escapes what a terminal would obey: nothing unprintable goes through a paint. */
export type Paint = (text: string, tone: Tone | undefined) => string

export const plain: Paint = (text) => printable(text)

const CODES: Readonly<Record<Tone, readonly [on: number, off: number]>> = {
  good: [32, 39],
  bad: [31, 39],
  busy: [36, 39],
  odd: [33, 39],
  quiet: [2, 22],
  loud: [1, 22],
}

const coloured: Paint = (text, tone) => {
  if (tone === undefined || text === '') return printable(text)
  const [on, off] = CODES[tone]
  return `\x1b[${on}m${printable(text)}\x1b[${off}m`
}

/**
 * Colours on a terminal only. FORCE_COLOR says yes everywhere, or with 0 no; NO_COLOR says no where the other says nothing.
 */
export function paintFor(output: { readonly columns: number | undefined }, env: Environment): Paint {
  const { FORCE_COLOR: forced, NO_COLOR: none, TERM: terminal } = env
  if (forced !== undefined) return forced === '0' || forced === 'false' ? plain : coloured
  if (none || terminal === 'dumb' || output.columns === undefined) return plain
  return coloured
}

type Environment = Readonly<Record<string, string | undefined>>

/** One vocabulary for jobs, flows, atoms, boards and conductors. */
const TONES: Readonly<Record<string, Tone>> = {
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

export function toneOf(state: string | undefined): Tone | undefined {
  return state !== undefined && Object.hasOwn(TONES, state) ? TONES[state] : undefined
}
