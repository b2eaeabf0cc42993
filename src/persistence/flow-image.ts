/** A flow as its transitions leave it: the one place that knows what a transition does, for every backend. */
import type { AtomState, FlowState } from '../core/states.ts'
import type { AtomDetail, FlowDetail, Meta, StateChange } from './models.ts'
import type { Transition } from './persistence.ts'

/** A transition and when it was recorded. */
export interface RecordedTransition extends Transition {
  readonly at: Date
}

/** What has to be written for a transition: of the flow everything but its atoms, of the atoms those that changed. */
export interface FlowChange {
  readonly state: FlowState
  readonly meta: Meta
  readonly states: readonly StateChange<FlowState>[]
  readonly at: Date
  readonly atoms: readonly AtomDetail[]
}

const STATES_KEPT = 50

/**
 * Takes one transition after the other, each at the cost of the atoms it names. Whether the state tables allow a step is
 * for the engine to know, not for a logbook: what happened is recorded.
 */
export class FlowImage {
  readonly #flow: Omit<FlowDetail, 'atoms' | 'state' | 'meta' | 'states' | 'updatedAt'>
  readonly #atoms: Map<string, AtomDetail>
  #state: FlowState
  #meta: Meta
  #states: readonly StateChange<FlowState>[]
  #updatedAt: Date

  /** The flow given stays as it is. */
  constructor({ atoms, state, meta, states = [], updatedAt, ...flow }: FlowDetail) {
    this.#flow = flow
    this.#atoms = new Map(atoms.map((atom) => [atom.name, atom]))
    this.#state = state
    this.#meta = meta
    this.#states = states
    this.#updatedAt = updatedAt
  }

  get detail(): FlowDetail {
    const changing = { state: this.#state, meta: this.#meta, states: this.#states, updatedAt: this.#updatedAt }
    return { ...this.#flow, ...changing, atoms: [...this.#atoms.values()] }
  }

  apply(transition: RecordedTransition): FlowChange {
    const { at, state = this.#state, meta, atoms = [] } = transition
    const { run } = this.#flow
    if (state !== this.#state) this.#states = longer(this.#states, { state, at, run })
    if (meta) this.#meta = { ...this.#meta, ...meta }
    this.#state = state
    this.#updatedAt = at
    const changed = atoms.map((atom) => this.#put(atom, at))
    return { state, meta: this.#meta, states: this.#states, at, atoms: changed }
  }

  #put(atom: AtomDetail, at: Date): AtomDetail {
    const before = this.#atoms.get(atom.name)
    const states = before?.states ?? []
    const { state } = atom
    const isNew = before?.state !== state
    const kept: AtomDetail = {
      ...atom,
      createdAt: before?.createdAt ?? at,
      states: isNew ? longer<AtomState>(states, { state, at, run: this.#flow.run }) : states,
    }
    this.#atoms.set(atom.name, kept)
    return kept
  }
}

function longer<S extends FlowState | AtomState>(
  states: readonly StateChange<S>[],
  change: StateChange<S>,
): readonly StateChange<S>[] {
  return [...states, change].slice(-STATES_KEPT)
}

/** What a writer says of an atom: without what the logbook knows better. */
export function writtenAtom({ createdAt: _made, states: _past, ...atom }: AtomDetail): AtomDetail {
  return atom
}
