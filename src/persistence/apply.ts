/** What a transition does to a flow detail: the one place that knows, for every backend that replays or keeps flows. */
import type { AtomDetail, FlowDetail } from './models.ts'
import type { AcquireRequest, Transition } from './persistence.ts'

/** A transition and when it was recorded. */
export interface RecordedTransition extends Transition {
  readonly at: Date
}

/**
 * A flow detail that transitions are applied to, one after the other. Whether the state tables allow a step is for the
 * engine to know, not for a logbook: what happened is recorded.
 *
 * A transition costs as much as it has atoms, however many the flow has.
 */
export class KeptFlow {
  #flow: Omit<FlowDetail, 'atoms'>
  readonly #atoms: Map<string, AtomDetail>

  constructor({ atoms, ...flow }: FlowDetail) {
    this.#flow = flow
    this.#atoms = new Map(atoms.map((atom) => [atom.name, atom]))
  }

  get run(): number {
    return this.#flow.run
  }

  get claim(): string {
    return this.#flow.claim
  }

  /** As it stands now. */
  get detail(): FlowDetail {
    return { ...this.#flow, atoms: [...this.#atoms.values()] }
  }

  apply(transition: RecordedTransition): void {
    const { state = this.#flow.state, meta, atoms = [], at } = transition
    const merged = meta ? { ...this.#flow.meta, ...meta } : this.#flow.meta
    this.#flow = { ...this.#flow, state, meta: merged, updatedAt: at }
    for (const atom of atoms) this.#atoms.set(atom.name, atom)
  }
}

/** The flow after these transitions; the one given stays as it is. */
export function applyTransitions(flow: FlowDetail, transitions: Iterable<RecordedTransition>): FlowDetail {
  const kept = new KeptFlow(flow)
  for (const transition of transitions) kept.apply(transition)
  return kept.detail
}

/** What a run starts from: the flow as its predecessor left it, or a new one, with this run as its only writer. */
export function acquiredFlow(predecessor: FlowDetail | undefined, request: AcquireRequest, at: Date): FlowDetail {
  const { flow, run, claim } = request
  if (predecessor) return { ...predecessor, run, claim, updatedAt: at }
  const { uuid, name, version } = flow
  return { uuid, name, version, state: 'PENDING', meta: {}, run, claim, atoms: [], createdAt: at, updatedAt: at }
}
