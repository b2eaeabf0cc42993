/** Tells the moves of an engine's atoms as TaskFlow's tests do: `a RUNNING`, `a SUCCESS(1)`; the flow is `flow`. */
import { type Ending, Engine, type EngineOptions } from '../../src/engine/index.ts'
import { type AnyFlow, type AnyTask, task } from '../../src/flow/index.ts'
import { fails, type TaskRecorder } from './workshop.ts'

export type Told = { readonly moves: string[]; readonly ending: Ending }

/** Runs a flow, one atom at a time unless told otherwise, and tells what happened. */
export async function tell(
  shop: TaskRecorder,
  flow: AnyFlow,
  options: Omit<EngineOptions, 'flow' | 'log'> = {},
): Promise<Told> {
  const engine = new Engine({ flow, log: await shop.acquire(flow), concurrency: 1, ...options })
  const moves: string[] = []
  engine.on('flow', ({ to }) => moves.push(`flow ${to}`))
  engine.on('atom', ({ atom, to, result }) => {
    moves.push(`${atom} ${to}${to === 'SUCCESS' && result !== undefined ? `(${JSON.stringify(result)})` : ''}`)
  })
  const ending = await engine.run()
  return { moves, ending }
}

/** Executes to 5, as TaskFlow's `ProgressingTask` does, and can be reverted. */
export function progressing(name: string, requires: readonly string[] = []): AnyTask {
  return task(name, { requires, provides: `${name} made`, execute: (_args: object) => 5, revert: () => undefined })
}

/** Fails each time that the number of times it has run before is below `times`. */
export function failing(name: string, times = Number.POSITIVE_INFINITY, message = 'Woot!'): AnyTask {
  let runs = 0
  return task(name, {
    execute: () => {
      runs += 1
      if (runs <= times) throw new Error(message)
      return 5
    },
    revert: () => undefined,
  })
}

/** Executes, but cannot be undone. */
export function failingFlow(name: string): AnyTask {
  return task(name, { execute: () => 5, revert: fails('Gotcha!') })
}

/** What one attempt of an atom that succeeds looks like. */
export const done = (name: string, result: unknown = 5) => [
  `${name} RUNNING`,
  `${name} SUCCESS(${JSON.stringify(result)})`,
]
export const undone = (...names: string[]) => names.flatMap((name) => [`${name} REVERTING`, `${name} REVERTED`])
export const broken = (name: string) => [`${name} RUNNING`, `${name} FAILURE`]
