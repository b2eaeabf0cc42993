/**
 * The right of one term to write one flow. It keeps the flow as it has written it, so that a write need not read.
 *
 * After a failed write it is unknown whether it was done; from then on this log refuses writes, and an acquire repeated
 * by the same claim reads the actual state.
 */
import { asError, type ClaimLost, InvalidState } from '../core/errors.ts'
import { type FlowChange, FlowRecord } from './flow-record.ts'
import type { FlowDetail } from './models.ts'
import type { AcquireRequest, FlowLog, Transition } from './persistence.ts'
import { supersededError } from './requests.ts'
import { type AtomColumns, atomColumns, encodeStates, toBytes } from './sql-rows.ts'

/** A transition of one flow. */
export interface SqlWrite {
  readonly flow: string
  readonly term: number
  /** The number of the write within the flow. */
  readonly number: number
  readonly change: FlowChange
  /** The meta, where the transition changes it. */
  readonly meta: Buffer | undefined
  readonly atoms: readonly SqlAtom[]
  readonly bytes: number
  /** Returns the error of an earlier write of the log, after which this one must not be sent: it would leave a hole. */
  readonly refusal: () => Error | undefined
}

export interface SqlAtom extends AtomColumns {
  /** The position among the atoms of its flow. */
  readonly position: number
  readonly states: string
  readonly createdAt: Date
}

/** The result of a write whose flow has another term, of run `newerRun`, or was removed. */
export interface SupersededWrite {
  readonly newerRun: number | undefined
}

export type Written = 'written' | SupersededWrite

export interface SqlFlowLogOptions {
  readonly request: AcquireRequest
  readonly flow: FlowDetail
  /** The flow's number, the term in which it was acquired, and the number of its earlier writes. */
  readonly row: { readonly id: string; readonly term: number; readonly writes: number }
  readonly write: (write: SqlWrite) => Promise<Written>
}

/** The estimated size of a row in addition to its content. */
const ROW_OVERHEAD_BYTES = 300

export class SqlFlowLog implements FlowLog {
  readonly flow: FlowDetail
  readonly #options: SqlFlowLogOptions
  readonly #record: FlowRecord
  readonly #positions: Map<string, number>
  #writes: number
  #refusal: ClaimLost | Error | undefined
  #closed = false

  constructor(options: SqlFlowLogOptions) {
    this.flow = options.flow
    this.#options = options
    this.#record = new FlowRecord(withoutResults(options.flow))
    this.#positions = new Map(options.flow.atoms.map(({ name }, position) => [name, position]))
    this.#writes = options.row.writes
  }

  async write(transition: Transition): Promise<void> {
    if (this.#closed) throw new InvalidState(`the log of flow ${this.flow.uuid} is closed`)
    if (this.#refusal) throw this.#refusal
    const write = this.#toWrite(transition)
    try {
      const written = await this.#options.write(write)
      if (written !== 'written') throw supersededError(this.#options.request, written.newerRun)
    } catch (error) {
      this.#refusal ??= asError(error)
      throw error
    }
  }

  async close(): Promise<void> {
    this.#closed = true
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /**
   * Prepares a write. All checks come before the record is changed. @throws InvalidArgument when it is not plain data
   */
  #toWrite({ state, meta, atoms = [] }: Transition): SqlWrite {
    const columns = atoms.map(atomColumns)
    if (meta) toBytes(meta)
    const slimAtoms = atoms.map((atom) => withoutResult(atom))
    const at = new Date()
    const change = this.#record.applyWithChange({
      at,
      ...(state && { state }),
      ...(meta && { meta }),
      atoms: slimAtoms,
    })
    this.#writes += 1
    const encodedMeta = meta && toBytes(change.meta)
    const rows = change.atoms.map((atom, index): SqlAtom[] => {
      const column = columns[index]
      const { createdAt = at, states = [] } = atom
      return column
        ? [{ ...column, position: this.#findPosition(atom.name), createdAt, states: encodeStates(states) }]
        : []
    })
    const size = columns.reduce(
      (sum, { body }) => sum + body.length + ROW_OVERHEAD_BYTES,
      ROW_OVERHEAD_BYTES + (encodedMeta?.length ?? 0),
    )
    const { id, term } = this.#options.row
    const refusal = () => this.#refusal
    return { flow: id, term, number: this.#writes, change, meta: encodedMeta, atoms: rows.flat(), bytes: size, refusal }
  }

  #findPosition(name: string): number {
    const known = this.#positions.get(name)
    if (known !== undefined) return known
    const position = this.#positions.size
    this.#positions.set(name, position)
    return position
  }
}

/** Returns the flow without results: they may be large, are written once, and are not needed here again. */
function withoutResults(flow: FlowDetail): FlowDetail {
  return { ...flow, atoms: flow.atoms.map(withoutResult) }
}

function withoutResult(atom: FlowDetail['atoms'][number]): FlowDetail['atoms'][number] {
  const { name, kind, version, state, intention, updatedAt, createdAt, states } = atom
  const fields = createdAt ? { createdAt } : {}
  return { name, kind, version, state, intention, meta: {}, updatedAt, ...fields, ...(states ? { states } : {}) }
}
