/**
 * Where an engine starts, given what the logbook says and what the flow is now.
 *
 * A flow that nobody has run, or that went forward when its last engine stopped, goes **forwards**: what is SUCCESS stays,
 * what was RUNNING runs again. A flow that was being reverted goes on **backwards**. One that has ended badly (REVERTED or
 * FAILURE) begins **anew** from clean atoms. One that has succeeded is **over**.
 *
 * The code may have changed since. Atoms that are new are executed when their turn comes; atoms that are gone keep their
 * records, and their failures still count, but nothing can execute or revert them.
 */
import { Duplicate, IncompatibleVersion } from '../core/errors.ts'
import type { AtomState, FlowState } from '../core/states.ts'
import type { AnyFlow, ExecutionGraph } from '../flow/index.ts'
import type { AtomDetail, FlowDetail } from '../persistence/index.ts'

export type Start = 'forwards' | 'backwards' | 'anew' | 'over'

/** The way from what was recorded to RUNNING. RESUMING and SUSPENDED are where a dead engine's flow passes through. */
export const WAY_TO_RUNNING: Readonly<Record<FlowState, readonly FlowState[]>> = {
  PENDING: ['RUNNING'],
  RUNNING: ['RESUMING', 'SUSPENDED', 'RUNNING'],
  SUSPENDING: ['RESUMING', 'SUSPENDED', 'RUNNING'],
  RESUMING: ['SUSPENDED', 'RUNNING'],
  SUSPENDED: ['RUNNING'],
  REVERTED: ['PENDING', 'RUNNING'],
  FAILURE: ['PENDING', 'RUNNING'],
  SUCCESS: [],
}

const ENDED_BADLY: ReadonlySet<FlowState> = new Set(['REVERTED', 'FAILURE'])
const ON_THE_WAY_BACK: ReadonlySet<AtomState> = new Set(['FAILURE', 'REVERTING', 'REVERTED', 'REVERT_FAILURE'])

export function startOf(flow: FlowDetail): Start {
  if (flow.state === 'SUCCESS') return 'over'
  if (ENDED_BADLY.has(flow.state)) return 'anew'
  return flow.atoms.some(isOnTheWayBack) ? 'backwards' : 'forwards'
}

function isOnTheWayBack({ state, intention }: AtomDetail): boolean {
  return intention === 'REVERT' || ON_THE_WAY_BACK.has(state)
}

/**
 * Refuses records that this release cannot carry on.
 *
 * @throws IncompatibleVersion for a kind of atom that this release does not know
 * @throws Duplicate when a name is another kind of atom now than it was
 */
export function assertResumable(detail: FlowDetail, graph: ExecutionGraph): void {
  for (const { name, kind } of detail.atoms) {
    if (kind !== 'task' && kind !== 'retry')
      throw new IncompatibleVersion(
        `flow ${detail.name}: its logbook has ${name} of kind ${String(kind)}, which a newer release wrote; run it there`,
      )
    const now = graph.byName.get(name)?.atom.kind ?? kind
    if (now !== kind)
      throw new Duplicate(
        `flow ${detail.name}: ${name} is a ${now}, but its logbook has a ${kind} of that name; rename it`,
      )
  }
}

/** What has changed between the code that wrote the logbook and the code at hand, in lines for the log. */
export function differences(detail: FlowDetail, options: { flow: AnyFlow; graph: ExecutionGraph }): string[] {
  const { flow, graph } = options
  const lines: string[] = []
  if (detail.atoms.length > 0 && detail.version !== flow.version)
    lines.push(`the flow was begun by version ${detail.version} and goes on with ${flow.version}`)
  for (const { name, version } of detail.atoms) {
    const now = graph.byName.get(name)?.atom
    if (!now) lines.push(`atom ${name} is in the logbook but not in the flow any more: it is left as it is`)
    else if (now.version !== version)
      lines.push(`atom ${name} was recorded by version ${version} and is ${now.version} now`)
  }
  return lines
}
