/**
 * Writes the gate of the board, which pauses and resumes it, and raises the base of the fences before a claim that would get too low a fence.
 * Every claim checks that the gate has not changed.
 */

import { InvalidState, NotConnected } from '../../../../core/errors.ts'
import { BadVersion, type CheckOp, NoNode, type ZooKeeperError } from '../../../../zookeeper/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import type { TransactionCommitter } from '../commit/committer.ts'
import { type Again, isAgain, TRY_AGAIN, type TransactionPart, untilDone } from '../commit/parts.ts'
import type { RefusalMeaning } from '../commit/transaction.ts'
import { gateCheckOp, gateSteps } from '../commit/transactions.ts'
import { encodeGate, type GateRecord } from '../store/encoding.ts'
import { assertIntact, FenceBase } from '../store/fence-base.ts'
import type { BoardGate, GateSnapshot } from '../store/gate.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import { translateErrors } from '../store/reader.ts'

export interface GateWriterOptions {
  readonly layout: ZooKeeperLayout
  readonly committer: TransactionCommitter
  readonly gate: BoardGate
  /** Returns the current session with the newest transaction that is known; undefined without a connection. */
  readonly session: () => { readonly id: bigint; readonly newestZxid: bigint } | undefined
  /** Returns the time of the servers' clock, in milliseconds since 1970. */
  readonly now: () => number
}

/** The gate as it was read, and the session whose claims may use its base. */
export interface PreparedGate {
  readonly seen: GateSnapshot
  readonly session: bigint
}

export class GateWriter {
  readonly #options: GateWriterOptions
  readonly #fences: FenceBase
  /** The check of the last guard. */
  #guard: CheckOp | undefined

  constructor(options: GateWriterOptions) {
    this.#options = options
    this.#fences = new FenceBase({
      path: options.layout.gate,
      now: options.now,
      raise: (seen, base) => this.#raiseFence(seen, base),
    })
  }

  /** The gate with a base that claims of this session may use, as far as that is known without a request: see {@link prepare}. */
  get prepared(): PreparedGate | undefined {
    const { gate, session: current } = this.#options
    const { seen } = gate
    const session = seen && !seen.paused && seen.damage === undefined ? current() : undefined
    if (!seen || !session || !this.#fences.isExamined(seen, session.id)) return undefined
    return { seen, session: session.id }
  }

  /** Returns the gate with a base that claims of this session may use. @throws Unclaimable while the board is paused */
  async prepare(what: string): Promise<PreparedGate> {
    const { gate, session: current } = this.#options
    const read = () => translateErrors(what, () => gate.read())
    let seen = gate.seen ?? (await read())
    if (!current()) seen = await read()
    const session = current()
    if (!session) throw new NotConnected(`${what}: nothing was done: there is no session`)
    const closed = () => refusalError(what, { why: 'paused' })
    if (seen.paused) throw closed()
    const examine = (gate: GateSnapshot) =>
      this.#fences.ensureValid(gate, { session: session.id, zxid: session.newestZxid })
    const examined = await examine(seen).catch(async (error) => {
      // The gate may have been repaired since it was read.
      if (error instanceof InvalidState) return examine(await read())
      throw error
    })
    if (examined.paused) throw closed()
    return { seen: examined, session: session.id }
  }

  async #raiseFence(seen: GateSnapshot, fenceBase: bigint): Promise<GateSnapshot> {
    const written = await this.#writeGate('raising the fence', seen, { ...seen, fenceBase })
    return isAgain(written) ? this.#readGate() : written
  }

  #readGate(): Promise<GateSnapshot> {
    return translateErrors('reading the gate', () => this.#options.gate.read())
  }

  /** Writes the gate, at the version at which it was read. */
  #writeGate(what: string, { version }: GateSnapshot, record: GateRecord): Promise<GateSnapshot | Again> {
    const { layout, committer, gate } = this.#options
    return committer.commit<GateSnapshot | Again>({
      what,
      steps: gateSteps(layout, encodeGate(record), { version }),
      touches: [{ name: 'gate', mode: 'alone' }],
      onCommitted: ({ results: [set] }) =>
        gate.noteWritten({ ...record, version: set && 'version' in set ? set.version : version + 1 }),
      // Another client may have written it since.
      onRecovered: () => this.#readGate(),
      onRefused: (error) => (isChanged(error) ? TRY_AGAIN : error),
    })
  }

  /**
   * Pauses or resumes the board. The fence base of the gate is kept: the gate is written at the revision that was read,
   * or read and written again.
   *
   * @throws InvalidState for a gate whose base cannot be read
   */
  async setPaused(paused: boolean): Promise<GateSnapshot> {
    const { gate, layout } = this.#options
    const what = paused ? 'pause of the board' : 'resumption of the board'
    let known = gate.seen
    return untilDone(async () => {
      const seen = known ?? (await translateErrors(what, () => gate.read()))
      known = undefined
      assertIntact(seen, layout.gate)
      const { fenceBase, limits } = seen
      return this.#writeGate(what, seen, { paused, fenceBase, limits })
    })
  }

  /**
   * Returns the part of a transaction that is refused if the gate is written meanwhile. Transactions of one group have the same check, so
   * that it is sent once.
   *
   * @param changed what that means
   */
  guardPart<T>(version: number, changed: RefusalMeaning<T>): TransactionPart<T> {
    return { guard: this.guardAt(version), onRefused: (error) => (isChanged(error) ? changed : undefined) }
  }

  /** Returns the check of the gate, the same object for all transactions of a version. */
  guardAt(version: number): CheckOp {
    if (this.#guard?.version !== version) this.#guard = gateCheckOp(this.#options.layout, version)
    return this.#guard
  }
}

function isChanged(error: ZooKeeperError): boolean {
  return error instanceof BadVersion || error instanceof NoNode
}
