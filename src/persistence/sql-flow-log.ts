/**
 * The right of one term to write one flow. It keeps the flow as it has written it, so that a write need not read.
 *
 * After a failed write it is unknown whether it was done; from then on this log refuses writes, and an acquire repeated
 * by the same claim reads the actual state.
 */

import type { HeldBackWrite } from '../core/async/held-back-write.ts'
import { asError, type ClaimLost, InvalidState } from '../core/errors.ts'
import { attempt, RESOLVED } from '../core/result.ts'
import type { FlowState } from '../core/states.ts'
import { FlowRecord } from './flow-record.ts'
import type { AtomDetail, FlowDetail } from './models.ts'
import type { AcquireRequest, FlowLog, Transition } from './persistence.ts'
import { supersededError } from './requests.ts'
import { type AtomColumns, atomColumns, type EscapeStates, PastTexts, toBytes } from './sql-rows.ts'

/** A transition, encoded. */
export interface SqlTransition {
  /** The number of the write within the flow. */
  readonly number: number
  readonly state: FlowState
  readonly at: Date
  /** The meta, where the transition changes it. */
  readonly meta: Buffer | undefined
  /** The states of the flow, encoded by {@link PastTexts}, where the transition changes its state, and in the first write of a flow that is not acquired yet. */
  readonly states: string | undefined
  /** The atoms, each once. */
  readonly atoms: readonly SqlAtom[]
  readonly bytes: number
  /** Returns the error of an earlier write of the log, after which this one must not be sent: it would leave a hole. */
  readonly refusal: () => Error | undefined
}

/** A transition of one flow. */
export interface SqlWrite extends SqlTransition {
  readonly flow: string
  readonly term: number
}

export interface SqlAtom extends AtomColumns {
  /** The position among the atoms of its flow. */
  readonly position: number
  /** Whether no earlier write of the log has it, and the flow had none of its name. */
  readonly isNew: boolean
  /** The states, encoded by {@link PastTexts}. */
  readonly states: string
  readonly createdAt: Date
}

/** The result of a write whose flow has another term, of run `newerRun`, or was removed. */
export interface SupersededWrite {
  readonly newerRun: number | undefined
}

export type Written = 'written' | SupersededWrite

/** The number of a flow, the term in which it was acquired, and the number of its earlier writes. */
export interface FlowRow {
  readonly id: string
  readonly term: number
  readonly writes: number
}

export interface SqlFlowLogOptions {
  readonly request: AcquireRequest
  readonly flow: FlowDetail
  /** The row of the flow; or a function that makes it, with the first transition, for a flow that is not acquired yet. */
  readonly row: FlowRow | ((first: SqlTransition) => Promise<FlowRow>)
  readonly write: (write: SqlWrite) => Promise<Written>
  /** Escapes the encoded states for the parameter of the statement; absent where that has plain JSON. */
  readonly escapeStates?: EscapeStates | undefined
  /** Returns the write for the transaction of a settlement; absent where no board can include it. @param send does the write alone */
  readonly toHeldBack?: ((write: SqlWrite, send: () => Promise<void>) => HeldBackWrite) | undefined
}

/** The estimated size of a row in addition to its content. */
const ROW_OVERHEAD_BYTES = 300

export class SqlFlowLog implements FlowLog {
  readonly flow: FlowDetail
  readonly #options: SqlFlowLogOptions
  readonly #record: FlowRecord
  readonly #positions: Map<string, number>
  readonly #past: PastTexts
  /** The row of the flow; undefined before the first write of a flow that is not acquired yet. */
  #row: FlowRow | Promise<FlowRow> | undefined
  #writes: number
  /** The number of writes that are not answered yet. */
  #underWay = 0
  /** Whether the last write was held back. */
  #hasEnded = false
  #refusal: ClaimLost | Error | undefined
  #closed = false

  constructor(options: SqlFlowLogOptions) {
    this.flow = options.flow
    this.#options = options
    this.#past = new PastTexts(options.escapeStates)
    this.#record = new FlowRecord(withoutResults(options.flow))
    this.#positions = new Map(options.flow.atoms.map(({ name }, position) => [name, position]))
    const { row } = options
    this.#row = typeof row === 'function' ? undefined : row
    this.#writes = typeof row === 'function' ? 0 : row.writes
  }

  write(transition: Transition): Promise<void> {
    return attempt(() => this.#write(transition))
  }

  /** Encodes a transition, and sends it or holds it back. Not async: see {@link attempt}. */
  #write(transition: Transition): Promise<void> {
    if (this.#closed) throw new InvalidState(`the log of flow ${this.flow.uuid} is closed`)
    if (this.#hasEnded) {
      // What a task reports after the end of its flow is not recorded, and must not fail the run.
      if (transition.state === undefined) return RESOLVED
      throw new InvalidState(`flow ${this.flow.uuid} has ended: its last write may be done already`)
    }
    if (this.#refusal) throw this.#refusal
    const encoded = this.#encode(transition)
    if (transition.state === 'SUCCESS' && this.#holdBack(encoded)) return RESOLVED
    this.#underWay += 1
    return attempt(() => this.#send(encoded)).then(
      () => {
        this.#underWay -= 1
      },
      (error: unknown) => {
        this.#underWay -= 1
        this.#refusal ??= asError(error)
        throw error
      },
    )
  }

  /** Leaves the last write to the caller of the acquire. Returns whether the caller takes it. */
  #holdBack(transition: SqlTransition): boolean {
    const { request, toHeldBack } = this.#options
    const row = this.#row
    // A write that is under way could come after it, and would be refused.
    if (!request.holdBack || !toHeldBack || !row || row instanceof Promise || this.#underWay > 0) return false
    const isTaken = request.holdBack(toHeldBack(toWrite(transition, row), () => attempt(() => this.#send(transition))))
    this.#hasEnded = isTaken
    return isTaken
  }

  /** Sends a transition to the row of the flow; the first one makes the row. */
  #send(transition: SqlTransition): Promise<void> {
    const { row } = this.#options
    const known = this.#row
    if (known instanceof Promise) return known.then((made) => this.#sendTo(made, transition))
    if (known !== undefined) return this.#sendTo(known, transition)
    if (typeof row !== 'function') throw new InvalidState(`flow ${this.flow.uuid} is not acquired`)
    const making = attempt(() => row(transition))
    this.#row = making
    return making.then((made) => {
      this.#row = made
    })
  }

  #sendTo(row: FlowRow, transition: SqlTransition): Promise<void> {
    const { request, write } = this.#options
    return write(toWrite(transition, row)).then((written) => {
      if (written !== 'written') throw supersededError(request, written.newerRun)
    })
  }

  async close(): Promise<void> {
    this.#closed = true
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /**
   * Encodes a transition. All checks come before the record is changed. @throws InvalidArgument when it is not plain data
   */
  #encode({ state, meta, atoms = [] }: Transition): SqlTransition {
    const columns = atoms.map(atomColumns)
    if (meta) toBytes(meta)
    const at = new Date()
    const past = this.#record.applyWithPast({ at, state, meta, atoms: atoms.map(withoutContent) })
    this.#writes += 1
    const encodedMeta = meta && toBytes(past.meta)
    let bytes = ROW_OVERHEAD_BYTES + (encodedMeta?.length ?? 0)
    const rows = new Map<string, SqlAtom>()
    atoms.forEach(({ name }, index) => {
      const column = columns[index]
      if (!column) return
      const { createdAt = at, states = [] } = past.atoms[index] ?? {}
      const isNew = rows.get(name)?.isNew ?? !this.#positions.has(name)
      const position = this.#findPosition(name)
      rows.set(name, Object.assign(column, { isNew, position, createdAt, states: this.#past.encode(name, states) }))
      bytes += column.body.length + ROW_OVERHEAD_BYTES
    })
    const hasStates = state !== undefined || this.#row === undefined
    return {
      number: this.#writes,
      state: past.state,
      at,
      meta: encodedMeta,
      states: hasStates ? this.#past.encode(FLOW, past.states) : undefined,
      atoms: [...rows.values()],
      bytes,
      refusal: () => this.#refusal,
    }
  }

  #findPosition(name: string): number {
    const known = this.#positions.get(name)
    if (known !== undefined) return known
    const position = this.#positions.size
    this.#positions.set(name, position)
    return position
  }
}

/** Returns a transition with the row that it changes. Field by field, because every write of every flow comes through here. */
function toWrite(transition: SqlTransition, { id, term }: FlowRow): SqlWrite {
  const { number, state, at, meta, states, atoms, bytes, refusal } = transition
  return { number, state, at, meta, states, atoms, bytes, refusal, flow: id, term }
}

/** Returns the flow without results: they may be large, are written once, and are not needed here again. */
function withoutResults(flow: FlowDetail): FlowDetail {
  return { ...flow, atoms: flow.atoms.map(withoutResult) }
}

/** Returns an atom for the record, which keeps only its name and its state. */
function withoutContent({ name, kind, version, state, intention, updatedAt }: AtomDetail): AtomDetail {
  return { name, kind, version, state, intention, meta: NO_META, updatedAt }
}

const NO_META = {}

/** The name of the flow among its atoms: no atom has an empty name. */
const FLOW = ''

function withoutResult(atom: FlowDetail['atoms'][number]): FlowDetail['atoms'][number] {
  const { name, kind, version, state, intention, updatedAt, createdAt, states } = atom
  const fields = createdAt ? { createdAt } : {}
  return { name, kind, version, state, intention, meta: {}, updatedAt, ...fields, ...(states ? { states } : {}) }
}
