/** What a transition does to a flow detail: the one place that knows, for every backend that replays or keeps flows. */
import type { AtomDetail, FlowDetail } from './models.ts'
import type { AcquireRequest, Transition } from './persistence.ts'

/** A transition and when it was recorded. */
export interface RecordedTransition extends Transition {
  readonly at: Date
}

/**
 * The flow after these transitions; the one given stays as it is. Whether the state tables allow a step is for the
 * engine to know, not for a logbook: what happened is recorded.
 *
 * Takes time proportional to the atoms of the flow plus those of the transitions.
 */
export function applyTransitions(flow: FlowDetail, transitions: Iterable<RecordedTransition>): FlowDetail {
  const atoms = new Map<string, AtomDetail>(flow.atoms.map((atom) => [atom.name, atom]))
  let { state, meta, updatedAt } = flow
  for (const transition of transitions) {
    state = transition.state ?? state
    if (transition.meta) meta = { ...meta, ...transition.meta }
    for (const atom of transition.atoms ?? []) atoms.set(atom.name, atom)
    updatedAt = transition.at
  }
  return { ...flow, state, meta, updatedAt, atoms: [...atoms.values()] }
}

/** What a run starts from: the flow as its predecessor left it, or a new one, with this run as its only writer. */
export function acquiredFlow(predecessor: FlowDetail | undefined, request: AcquireRequest, at: Date): FlowDetail {
  const { flow, run, claim } = request
  if (predecessor) return { ...predecessor, run, claim, updatedAt: at }
  const { uuid, name, version } = flow
  return { uuid, name, version, state: 'PENDING', meta: {}, run, claim, atoms: [], createdAt: at, updatedAt: at }
}
