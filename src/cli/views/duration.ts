/** How long an atom, or a flow, took: told by the states it went through. */

interface StateEntry {
  readonly state: string
  readonly at: Date
}

export interface RunDuration {
  /** When it last began. */
  readonly startedAt?: Date
  /** From then to what came after; absent of what runs still. */
  readonly milliseconds?: number
}

/** Of one execution, the last: attempts before it are not counted, nor is what reverting took. */
export function measureLastRun(states: readonly StateEntry[] = []): RunDuration {
  const began = states.findLastIndex(({ state }) => state === 'RUNNING')
  return toRunDuration(states[began], states[began + 1])
}

/** From its first beginning to now, with all rests in between. */
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
