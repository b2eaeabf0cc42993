/**
 * The record of a flow, changed by its transitions. It is the only implementation of a transition's effect, for every
 * backend.
 */
import { defined } from '../core/options.ts'
import type { AtomState, FlowState } from '../core/states.ts'
import type { AtomDetail, FlowDetail, Meta, StateChange } from './models.ts'
import type { AcquireRequest, FlowRequest, Transition } from './persistence.ts'

/** A transition and the time at which it was recorded. */
export interface RecordedTransition {
  readonly at: Date
  readonly state?: Transition['state'] | undefined
  readonly meta?: Transition['meta'] | undefined
  readonly atoms?: Transition['atoms'] | undefined
}

/** The data to write for a transition: the flow without its atoms, and the atoms that changed. */
export interface FlowChange {
  readonly state: FlowState
  readonly meta: Meta
  readonly states: readonly StateChange<FlowState>[]
  readonly at: Date
  readonly atoms: readonly AtomDetail[]
}

/** The states of a flow and of changed atoms after a transition. The lists are the record's own: they are read before the next transition. */
export interface ChangedPast {
  readonly state: FlowState
  readonly meta: Meta
  readonly states: readonly StateChange<FlowState>[]
  readonly atoms: readonly AtomPast[]
}

/** The fields of an atom that the logbook adds. */
export interface AtomPast {
  readonly createdAt: Date | undefined
  readonly states: readonly StateChange<AtomState>[]
}

/** The number of states that are kept. */
export const MAX_STATES = 50

/** An atom as it was written, and the fields that the logbook adds; they are combined when the atom is read. */
interface AtomRecord {
  atom: AtomDetail
  readonly createdAt: Date | undefined
  readonly states: StateChange<AtomState>[]
}

/**
 * Applies transitions one after the other, each at the cost of the atoms that it names. It does not check the state
 * tables, which is the engine's task: a logbook records what happened.
 */
export class FlowRecord {
  readonly #flow: Omit<FlowDetail, 'atoms' | 'state' | 'meta' | 'states' | 'updatedAt'>
  readonly #atoms = new Map<string, AtomRecord>()
  readonly #states: StateChange<FlowState>[]
  #state: FlowState
  #meta: Meta
  #updatedAt: Date

  /** Copies the flow; the given flow is not changed. */
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

  /** Applies a transition. The given atoms are kept without a copy. */
  apply({ at, state, meta, atoms = [] }: RecordedTransition): void {
    if (state !== undefined && state !== this.#state) {
      this.#state = state
      appendState(this.#states, { state, at, run: this.#flow.run })
    }
    if (meta) this.#meta = { ...this.#meta, ...meta }
    this.#updatedAt = at
    for (const atom of atoms) this.#put(atom, at)
  }

  /** Applies a transition, and returns the data to write for it. */
  applyWithChange(transition: RecordedTransition): FlowChange {
    this.apply(transition)
    const atoms = (transition.atoms ?? []).flatMap(({ name }) => {
      const kept = this.#atoms.get(name)
      return kept ? [toAtomDetail(kept)] : []
    })
    return { state: this.#state, meta: this.#meta, states: [...this.#states], at: transition.at, atoms }
  }

  /** Applies a transition, and returns its effect without copies. */
  applyWithPast(transition: RecordedTransition): ChangedPast {
    this.apply(transition)
    const atoms: AtomPast[] = []
    for (const { name } of transition.atoms ?? []) {
      const kept = this.#atoms.get(name)
      if (kept) atoms.push(kept)
    }
    return { state: this.#state, meta: this.#meta, states: this.#states, atoms }
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
  return { ...atom, ...defined({ createdAt }), states: [...states] }
}

function appendState<S extends FlowState | AtomState>(states: StateChange<S>[], change: StateChange<S>): void {
  states.push(change)
  if (states.length > MAX_STATES) states.shift()
}

/** Returns the atom without the fields that the logbook adds. */
export function toWrittenAtom(atom: AtomDetail): AtomDetail {
  if (!('createdAt' in atom || 'states' in atom)) return atom
  const { createdAt: _made, states: _past, ...written } = atom
  return written
}

/** Returns the flow after these transitions; the given flow is not changed. */
export function applyTransitions(flow: FlowDetail, transitions: Iterable<RecordedTransition>): FlowDetail {
  const image = new FlowRecord(flow)
  for (const transition of transitions) image.apply(transition)
  return image.detail
}

/** Returns a flow that was never acquired: its run is 0, below every real run. */
export function createFlowDetail({ flow, meta = {} }: FlowRequest, at: Date): FlowDetail {
  const { uuid, name, version } = flow
  const states = [{ state: 'PENDING', at, run: 0 }] as const
  return {
    uuid,
    name,
    version,
    state: 'PENDING',
    meta,
    run: 0,
    claim: '',
    atoms: [],
    states,
    createdAt: at,
    updatedAt: at,
  }
}

/** Returns the flow with which a run starts: the predecessor's flow, or a new one, with this run as its only writer. */
export function toAcquiredFlow(predecessor: FlowDetail | undefined, request: AcquireRequest, at: Date): FlowDetail {
  const { run, claim } = request
  return { ...(predecessor ?? createFlowDetail(request, at)), run, claim, updatedAt: at }
}
