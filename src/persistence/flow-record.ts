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

const MAX_STATES = 50

/** An atom as its writer said it, and what the logbook knows better: put together only when somebody asks. */
interface AtomRecord {
  atom: AtomDetail
  readonly createdAt: Date | undefined
  readonly states: StateChange<AtomState>[]
}

/**
 * Takes one transition after the other, each at the cost of the atoms it names. Whether the state tables allow a step is
 * for the engine to know, not for a logbook: what happened is recorded.
 */
export class FlowRecord {
  readonly #flow: Omit<FlowDetail, 'atoms' | 'state' | 'meta' | 'states' | 'updatedAt'>
  readonly #atoms = new Map<string, AtomRecord>()
  readonly #states: StateChange<FlowState>[]
  #state: FlowState
  #meta: Meta
  #updatedAt: Date

  /** The flow given stays as it is. */
  constructor({ atoms, state, meta, states = [], updatedAt, ...flow }: FlowDetail) {
    this.#flow = flow
    for (const atom of atoms)
      this.#atoms.set(atom.name, { atom, createdAt: atom.createdAt, states: [...(atom.states ?? [])] })
    this.#state = state
    this.#meta = meta
    this.#states = [...states]
    this.#updatedAt = updatedAt
  }

  get detail(): FlowDetail {
    const changing = { state: this.#state, meta: this.#meta, states: [...this.#states], updatedAt: this.#updatedAt }
    return { ...this.#flow, ...changing, atoms: [...this.#atoms.values()].map(toAtomDetail) }
  }

  /** The atoms of the transition are kept as they are. */
  apply({ at, state, meta, atoms = [] }: RecordedTransition): void {
    if (state !== undefined && state !== this.#state) {
      this.#state = state
      appendState(this.#states, { state, at, run: this.#flow.run })
    }
    if (meta) this.#meta = { ...this.#meta, ...meta }
    this.#updatedAt = at
    for (const atom of atoms) this.#put(atom, at)
  }

  /** Applies it, and tells what has to be written for it. */
  applyWithChange(transition: RecordedTransition): FlowChange {
    this.apply(transition)
    const atoms = (transition.atoms ?? []).flatMap(({ name }) => {
      const kept = this.#atoms.get(name)
      return kept ? [toAtomDetail(kept)] : []
    })
    return { state: this.#state, meta: this.#meta, states: [...this.#states], at: transition.at, atoms }
  }

  #put(atom: AtomDetail, at: Date): void {
    let kept = this.#atoms.get(atom.name)
    const isNew = kept?.atom.state !== atom.state
    if (kept?.createdAt) kept.atom = atom
    else {
      kept = { atom, createdAt: at, states: kept?.states ?? [] }
      this.#atoms.set(atom.name, kept)
    }
    if (isNew) appendState(kept.states, { state: atom.state, at, run: this.#flow.run })
  }
}

function toAtomDetail({ atom, createdAt, states }: AtomRecord): AtomDetail {
  return { ...atom, ...(createdAt && { createdAt }), states: [...states] }
}

function appendState<S extends FlowState | AtomState>(states: StateChange<S>[], change: StateChange<S>): void {
  states.push(change)
  if (states.length > MAX_STATES) states.shift()
}

/** What a writer says of an atom: without what the logbook knows better. */
export function toWrittenAtom(atom: AtomDetail): AtomDetail {
  if (!('createdAt' in atom || 'states' in atom)) return atom
  const { createdAt: _made, states: _past, ...written } = atom
  return written
}
