/** Numbers, durations and times for people. */
import type { WireCount } from '../../wire/board.ts'

const NUMBER = new Intl.NumberFormat('en')
const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export function formatNumber(value: number): string {
  return NUMBER.format(value)
}

/** Returns a size of memory in megabytes. */
export function formatMegabytes(bytes: number): string {
  return `${formatNumber(Math.round(bytes / 1_024 ** 2))} MB`
}

/** Returns `10,000+` for a count that was ended at 10,000. */
export function formatCount({ value, atLeast }: WireCount): string {
  return `${formatNumber(value)}${atLeast ? '+' : ''}`
}

/** Returns a duration with its two largest units: `2 h 4 min`; below a minute with tenths of seconds if `exact`. */
export function formatDuration(ms: number, { exact = false } = {}): string {
  if (ms < 0) return `−${formatDuration(-ms, { exact })}`
  if (exact && ms < SECOND) return `${Math.round(ms)} ms`
  if (exact && ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`
  if (ms < HOUR) return pair(ms, MINUTE, 'min', SECOND, 's')
  if (ms < DAY) return pair(ms, HOUR, 'h', MINUTE, 'min')
  return pair(ms, DAY, 'd', HOUR, 'h')
}

function pair(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % large) / small)
  return `${Math.floor(ms / large)} ${largeName}${rest === 0 ? '' : ` ${rest} ${smallName}`}`
}

/** Returns a duration with its largest unit only, for ages in lists. */
export function formatAge(ms: number): string {
  const units = [
    [DAY, 'd'],
    [HOUR, 'h'],
    [MINUTE, 'min'],
  ] as const
  for (const [size, name] of units) if (ms >= size) return `${Math.floor(ms / size)} ${name}`
  return `${Math.max(0, Math.floor(ms / SECOND))} s`
}

/** Returns `2026-11-25 23:59:01 UTC`. */
export function formatUtc(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
}

/** Returns the time in the zone of this browser: `2026-11-26 00:59:01 +01:00`. */
export function formatLocal(iso: string): string {
  const date = new Date(iso)
  const offset = -date.getTimezoneOffset()
  const shifted = new Date(date.getTime() + offset * MINUTE).toISOString()
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60]
  const zone = `${offset < 0 ? '-' : '+'}${String(hours).padStart(2, '0')}:${String(minutes).padStart(2, '0')}`
  return `${shifted.slice(0, 10)} ${shifted.slice(11, 19)} ${zone}`
}

/** Returns a search term for the box: `flow:name`, quoted where the value needs it. */
export function term(prefix: string, value: string): string {
  return `${prefix}:${/[\s"]/.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : value}`
}

/** The states of a search for all jobs that the board still has: a search without states finds open ones only. */
export const KEPT_STATES = 'state:waiting,delayed,running,trashed'

/** Control characters, and characters that change the direction of what follows. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Words rather than the signs of Unicode, such as `␛`, which few fonts have. */
const CONTROL: Readonly<Record<string, string>> = {
  '\0': '‹NUL›',
  '\t': '‹TAB›',
  '\n': '‹LF›',
  '\r': '‹CR›',
  '\u001b': '‹ESC›',
  '\u007f': '‹DEL›',
}

/**
 * Returns a text in which characters that cannot be seen are: `‹ESC›`, and `‹U+202E›` for a change of direction.
 *
 * @param options.lines whether ends of lines and tabs stay what they are
 */
export function visible(text: string, { lines = false } = {}): string {
  return text.replace(HIDDEN, (character) => {
    if (lines && (character === '\n' || character === '\t')) return character
    return CONTROL[character] ?? `‹U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}›`
  })
}

/** Returns at most so many characters of a text, without cutting one in two. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text
  return `${text.slice(0, max - 1).replace(/[\ud800-\udbff]$/, '')}…`
}
