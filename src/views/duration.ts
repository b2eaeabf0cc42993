/** Durations of atoms and flows, computed from their recorded states. */

interface StateEntry {
  readonly state: string
  readonly at: Date
}

export interface RunDuration {
  /** The start of the last execution. */
  readonly startedAt?: Date
  /** The duration until the next state; absent while it runs. */
  readonly milliseconds?: number
}

/** Returns the duration of the last execution: earlier attempts and reverting are not counted. */
export function measureLastRun(states: readonly StateEntry[] = []): RunDuration {
  const began = states.findLastIndex(({ state }) => state === 'RUNNING')
  return toRunDuration(states[began], states[began + 1])
}

/** Returns the duration from the first start to now, with all pauses between. */
export function measureWholeRun(states: readonly StateEntry[], options: { over: boolean }): RunDuration {
  const began = states.find(({ state }) => state === 'RUNNING')
  return toRunDuration(began, options.over ? states.at(-1) : undefined)
}

function toRunDuration(
  began: { readonly at: Date } | undefined,
  ended: { readonly at: Date } | undefined,
): RunDuration {
  if (!began) return {}
  const milliseconds = ended && Math.max(0, ended.at.getTime() - began.at.getTime())
  return { startedAt: began.at, ...(milliseconds === undefined ? {} : { milliseconds }) }
}

const UNITS_MS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/**
 * Formats an age as `5s`, `12m`, `3h`, `40d`; an instant in the future, from another machine's fast clock, is `0s` old.
 */
export function formatAge(instant: Date, now: Date): string {
  const passed = Math.max(0, now.getTime() - instant.getTime())
  const [unit, size] = UNITS_MS.find(([, size]) => passed >= size) ?? ['s', 1_000]
  return `${Math.floor(passed / size)}${unit}`
}

/** Formats a duration as `12ms`, `3.4s`, `2m 5s`, `3h 7m`: its two most significant parts. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)}ms`
  if (milliseconds < 60_000) return `${Math.floor(milliseconds / 100) / 10}s`
  const larger = UNITS_MS.findIndex(([, size]) => milliseconds >= size)
  const [unit, size] = UNITS_MS[larger] ?? UNITS_MS[2]
  const [smaller, part] = UNITS_MS[larger + 1] ?? UNITS_MS[3]
  const rest = Math.floor((milliseconds % size) / part)
  return `${Math.floor(milliseconds / size)}${unit}${rest > 0 ? ` ${rest}${smaller}` : ''}`
}

/** Returns a duration that is parsed as the same number of milliseconds; {@link formatDuration} rounds. */
export function exactDuration(ms: number): string {
  const [unit, size] = UNITS_MS.find(([, each]) => ms > 0 && ms % each === 0) ?? ['ms', 1]
  return `${ms / size}${unit}`
}
