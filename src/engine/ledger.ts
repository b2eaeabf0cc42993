/**
 * The states of a flow and its atoms as the engine sees them: the states in the logbook, and changes that are not recorded yet.
 *
 * Moves are checked against the state tables and gathered; {@link Ledger.takeTransition} hands out all that has gathered as one
 * transition. The engine records before each piece of the user's code it runs, and at the end: what happened in the same
 * instant (one task succeeded, the next one starts) is one write, and nothing ever runs ahead of the logbook.
 */
import type { Failure } from '../core/failure.ts'
import { defined } from '../core/options.ts'
import {
  ATOM_TRANSITIONS,
  type AtomState,
  checkTransition,
  FLOW_TRANSITIONS,
  type FlowState,
  type Intention,
} from '../core/states.ts'
import type { AnyAtom } from '../flow/index.ts'
import type { AtomDetail, FlowDetail, Transition } from '../persistence/index.ts'
import type { AtomTransition, EngineEvent } from './events.ts'

/** The changes of an atom's record by a transition, besides its state; an `undefined` would be stored. */
type AtomRecordUpdate = Partial<
  Pick<AtomDetail, 'version' | 'result' | 'failure' | 'revertResult' | 'revertFailure' | 'history'>
>

/** The fields of an atom's record that change without a transition; fields that are `undefined` are removed. */
type AtomNotes = {
  readonly [K in 'history' | 'failure' | 'progressMessage' | 'checkpoint']?: AtomDetail[K] | undefined
} & { readonly meta?: object }

export class Ledger {
  readonly #name: string
  readonly #atoms = new Map<string, AtomDetail>()
  /** The failures, separate from the records: reading them takes no search through all records. Undefined until the first one: most flows have none. */
  #failures: Map<string, Failure> | undefined
  #revertFailures: Map<string, Failure> | undefined
  readonly #changed = new Set<string>()
  readonly #recordsEvents: boolean
  #events: EngineEvent[] = []
  #state: FlowState
  #since: Date
  #recordedState: FlowState

  /** @param options.recordsEvents whether transitions are kept for listeners */
  constructor(flow: FlowDetail, options: { recordsEvents: boolean }) {
    this.#name = flow.name
    this.#recordsEvents = options.recordsEvents
    this.#state = flow.state
    this.#since = flow.updatedAt
    this.#recordedState = flow.state
    for (const atom of flow.atoms) this.#trackFailures(atom)
  }

  get state(): FlowState {
    return this.#state
  }

  /** The failures of atoms, including atoms that the flow no longer has. */
  get failures(): Failure[] {
    return [...(this.#failures?.values() ?? [])]
  }

  get revertFailures(): Failure[] {
    return [...(this.#revertFailures?.values() ?? [])]
  }

  has(name: string): boolean {
    return this.#atoms.has(name)
  }

  /** @throws Error for an atom that was neither in the logbook nor added */
  atom(name: string): AtomDetail {
    const atom = this.#atoms.get(name)
    if (!atom) throw new Error(`no record of atom ${name}`)
    return atom
  }

  /** @throws InvalidState when the flow cannot go this way */
  moveFlow(...path: readonly FlowState[]): void {
    for (const to of path) {
      checkTransition(FLOW_TRANSITIONS, { what: () => `flow ${this.#name}`, from: this.#state, to })
      const at = new Date()
      const move = { from: this.#state, to, at, duration: at.getTime() - this.#since.getTime() }
      if (this.#recordsEvents) this.#events.push({ kind: 'flow', event: { flow: this.#name, ...move } })
      this.#state = to
      this.#since = at
    }
  }

  /** @throws InvalidState when the atom cannot go this way */
  moveAtom(name: string, to: AtomState, outcome?: AtomRecordUpdate): AtomDetail {
    const atom = this.atom(name)
    checkTransition(ATOM_TRANSITIONS, { what: () => `atom ${name}`, from: atom.state, to })
    const after = copyRecord(atom, staleField(to))
    after.state = to
    after.updatedAt = new Date()
    if (outcome) Object.assign(after, outcome)
    this.#setRecord(after)
    if (this.#recordsEvents) this.#toEvent(atom, after)
    return after
  }

  /** Records the intention for an atom, before the engine acts on it. */
  intend(name: string, intention: Intention): void {
    const atom = this.atom(name)
    if (atom.intention === intention) return
    const after = copyRecord(atom)
    after.intention = intention
    after.updatedAt = new Date()
    this.#setRecord(after)
  }

  /** Changes fields of an atom's record without a transition. */
  annotate(name: string, { meta, ...facts }: AtomNotes): void {
    const atom = this.atom(name)
    this.#setRecord(defined({ ...atom, ...facts, meta: meta ? defined({ ...atom.meta, ...meta }) : atom.meta }))
  }

  add(atom: AnyAtom): void {
    this.#setRecord(cleanRecord(atom))
  }

  /** Replaces a record by a clean one, which keeps its checkpoint, from any state: the transition tables are not checked. */
  restart(name: string): void {
    const atom = this.atom(name)
    const after = restartedRecord(atom)
    this.#setRecord(after)
    if (this.#recordsEvents && atom.state !== 'PENDING') this.#toEvent(atom, after)
  }

  /** Restarts every record, including atoms that the flow no longer has. */
  reset(): void {
    for (const name of [...this.#atoms.keys()]) this.restart(name)
  }

  /** Returns the changes since the last call, for the next write; undefined if there are none. */
  takeTransition(): Transition | undefined {
    const atoms: AtomDetail[] = []
    for (const name of this.#changed) atoms.push(this.atom(name))
    const state = this.#state === this.#recordedState ? undefined : this.#state
    if (atoms.length === 0 && !state) return undefined
    this.#changed.clear()
    this.#recordedState = this.#state
    if (!state) return { atoms }
    return atoms.length > 0 ? { state, atoms } : { state }
  }

  /** Returns the events since the last call, for listeners. */
  takeEvents(): readonly EngineEvent[] {
    const events = this.#events
    if (events.length > 0) this.#events = []
    return events
  }

  #toEvent(from: AtomDetail, to: AtomDetail): void {
    const { name, kind, state, updatedAt, result, failure } = to
    const move: AtomTransition = {
      flow: this.#name,
      atom: name,
      kind,
      from: from.state,
      to: state,
      at: updatedAt,
      duration: updatedAt.getTime() - from.updatedAt.getTime(),
      ...(state === 'SUCCESS' ? { result } : {}),
      ...defined({ failure }),
    }
    this.#events.push({ kind: 'atom', event: move })
  }

  #setRecord(atom: AtomDetail): void {
    this.#trackFailures(atom)
    this.#changed.add(atom.name)
  }

  #trackFailures(atom: AtomDetail): void {
    this.#atoms.set(atom.name, atom)
    const { name, failure, revertFailure } = atom
    this.#failures = track(this.#failures, name, failure)
    this.#revertFailures = track(this.#revertFailures, name, revertFailure)
  }
}

function cleanRecord({ name, kind, version }: Pick<AtomDetail, 'name' | 'kind' | 'version'>): AtomDetail {
  return { name, kind, version, state: 'PENDING', intention: 'EXECUTE', meta: {}, updatedAt: new Date() }
}

/** Returns a clean record with the checkpoint. How much a revert that has failed undid is not known: that checkpoint is removed. */
function restartedRecord(atom: AtomDetail): AtomDetail {
  const { checkpoint, state } = atom
  return checkpoint && state !== 'REVERT_FAILURE' ? { ...cleanRecord(atom), checkpoint } : cleanRecord(atom)
}

/** Notes the failure of an atom, or that it has none. Returns the failures. */
function track(
  failures: Map<string, Failure> | undefined,
  name: string,
  failure: Failure | undefined,
): Map<string, Failure> | undefined {
  if (failure) return (failures ?? new Map<string, Failure>()).set(name, failure)
  failures?.delete(name)
  return failures
}

/**
 * Copies a record, with fields that only a newer release knows. The fields are assigned one by one: records have several shapes, and a spread would give
 * each copy a new shape, which is slower than the copying itself.
 *
 * @param omitted the field that is left out
 */
function copyRecord(
  atom: AtomDetail,
  omitted?: keyof AtomDetail,
): { -readonly [K in keyof AtomDetail]: AtomDetail[K] } {
  const { name, kind, version, state, intention, meta, updatedAt } = atom
  const copy = { name, kind, version, state, intention, meta, updatedAt }
  for (const field in atom)
    if (!(field in copy) && field !== omitted)
      (copy as Record<string, unknown>)[field] = atom[field as keyof AtomDetail]
  return copy
}

/** Returns the field that a record loses when its atom enters this state; undefined if it loses none. */
function staleField(to: AtomState): keyof AtomDetail | undefined {
  // The result of a reverted atom, or of an earlier attempt.
  if (to === 'REVERTED' || to === 'RETRYING') return 'result'
  return to === 'SUCCESS' ? 'checkpoint' : undefined
}
