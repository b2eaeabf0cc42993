/** How long an atom, or a flow, took: told by the states it went through. */

interface Change {
  readonly state: string
  readonly at: Date
}

export interface Took {
  /** When it last began. */
  readonly startedAt?: Date
  /** From then to what came after; absent of what runs still. */
  readonly milliseconds?: number
}

/** Of one execution, the last: attempts before it are not counted, nor is what reverting took. */
export function lastRun(states: readonly Change[] = []): Took {
  const began = states.findLastIndex(({ state }) => state === 'RUNNING')
  return between(states[began], states[began + 1])
}

/** From its first beginning to now, with all rests in between. */
export function wholeRun(states: readonly Change[], options: { over: boolean }): Took {
  const began = states.find(({ state }) => state === 'RUNNING')
  return between(began, options.over ? states.at(-1) : undefined)
}

function between(began: { readonly at: Date } | undefined, ended: { readonly at: Date } | undefined): Took {
  if (!began) return {}
  const milliseconds = ended && Math.max(0, ended.at.getTime() - began.at.getTime())
  return { startedAt: began.at, ...(milliseconds === undefined ? {} : { milliseconds }) }
}
