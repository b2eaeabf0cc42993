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
