/**
 * The states of a flow and its atoms as the engine sees them, ahead of the logbook by what has not been recorded yet.
 *
 * Moves are checked against the state tables and gathered; {@link Ledger.record} writes all that has gathered as one
 * transition. The engine records before each piece of the user's code it runs, and at the end: what happened in the same
 * instant (one task succeeded, the next one starts) is one write, and nothing ever runs ahead of the logbook.
 */
import type { Failure } from '../core/failure.ts'
import {
  ATOM_TRANSITIONS,
  type AtomState,
  checkTransition,
  FLOW_TRANSITIONS,
  type FlowState,
  type Intention,
} from '../core/states.ts'
import type { AnyTask } from '../flow/index.ts'
import type { AtomDetail, FlowLog } from '../persistence/index.ts'

/** What a move leaves behind in the atom's record, beside its state. */
type Outcome = Partial<Pick<AtomDetail, 'version' | 'result' | 'failure' | 'revertResult' | 'revertFailure'>>

export class Ledger {
  readonly #log: FlowLog
  readonly #atoms = new Map<string, AtomDetail>()
  /** Apart from the records, so that asking for them does not mean looking through all of these. */
  readonly #failures = new Map<string, Failure>()
  readonly #revertFailures = new Map<string, Failure>()
  readonly #changed = new Set<string>()
  #state: FlowState
  #recordedState: FlowState

  constructor(log: FlowLog) {
    this.#log = log
    this.#state = log.flow.state
    this.#recordedState = log.flow.state
    for (const atom of log.flow.atoms) this.#keep(atom)
  }

  get state(): FlowState {
    return this.#state
  }

  /** Why atoms failed, those included that the flow does not have any more. */
  get failures(): Failure[] {
    return [...this.#failures.values()]
  }

  get revertFailures(): Failure[] {
    return [...this.#revertFailures.values()]
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
      checkTransition(FLOW_TRANSITIONS, { what: `flow ${this.#log.flow.name}`, from: this.#state, to })
      this.#state = to
    }
  }

  /** @throws InvalidState when the atom cannot go this way */
  moveAtom(name: string, to: AtomState, outcome: Outcome = {}): void {
    const atom = this.atom(name)
    checkTransition(ATOM_TRANSITIONS, { what: `atom ${name}`, from: atom.state, to })
    const before = to === 'REVERTED' ? withoutResult(atom) : atom
    this.#put({ ...before, ...present(outcome), state: to, updatedAt: new Date() })
  }

  /** Says what is meant to become of an atom, before it does. */
  intend(name: string, intention: Intention): void {
    const atom = this.atom(name)
    if (atom.intention !== intention) this.#put({ ...atom, intention, updatedAt: new Date() })
  }

  add(task: AnyTask): void {
    this.#put(cleanRecord(task))
  }

  /** Begins every record anew. That is no move of the old record, from whatever state, and no table has it. */
  reset(): void {
    for (const atom of this.#atoms.values()) this.#put(cleanRecord(atom))
  }

  /**
   * Writes what has gathered since the last time: one write, or none where nothing has changed.
   *
   * @throws what {@link FlowLog.write} throws; the ledger is of no use afterwards
   */
  async record(): Promise<void> {
    const atoms = [...this.#changed].map((name) => this.atom(name))
    const state = this.#state === this.#recordedState ? {} : { state: this.#state }
    if (atoms.length === 0 && !('state' in state)) return
    this.#changed.clear()
    this.#recordedState = this.#state
    await this.#log.write({ ...state, ...(atoms.length > 0 ? { atoms } : {}) })
  }

  #put(atom: AtomDetail): void {
    this.#keep(atom)
    this.#changed.add(atom.name)
  }

  #keep(atom: AtomDetail): void {
    this.#atoms.set(atom.name, atom)
    if (atom.failure) this.#failures.set(atom.name, atom.failure)
    else this.#failures.delete(atom.name)
    if (atom.revertFailure) this.#revertFailures.set(atom.name, atom.revertFailure)
    else this.#revertFailures.delete(atom.name)
  }
}

function cleanRecord({ name, kind, version }: Pick<AtomDetail, 'name' | 'kind' | 'version'>): AtomDetail {
  return { name, kind, version, state: 'PENDING', intention: 'EXECUTE', meta: {}, updatedAt: new Date() }
}

/** What has been undone is no result any more, and may be large. */
function withoutResult({ result: _undone, ...atom }: AtomDetail): AtomDetail {
  return atom
}

/** Leaves out what is undefined: an encoding that has no undefined must give the same record back. */
function present(outcome: Outcome): Outcome {
  return Object.fromEntries(Object.entries(outcome).filter(([, value]) => value !== undefined))
}
