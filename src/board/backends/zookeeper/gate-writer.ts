/**
 * Writes the gate of the board: it pauses and resumes the board, and raises the base of the fences before a claim that would
 * get too low a fence.
 */
import { InvalidState, NotConnected } from '../../../core/errors.ts'
import { BadVersion, NoNode } from '../../../zookeeper/index.ts'
import type { GateRequest } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { TransactionCommitter } from './commit/committer.ts'
import { gateSteps } from './commit/transactions.ts'
import { assertIntact, FenceBase } from './store/fence-base.ts'
import type { BoardGate, GateSnapshot } from './store/gate.ts'
import type { Layout } from './store/layout.ts'
import { translateErrors } from './store/reader.ts'
import { encodeGate, type GateRecord } from './store/records.ts'

export interface GateWriterOptions {
  readonly layout: Layout
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
    return (await this.#writeGate('raising the fence', seen, { ...seen, fenceBase })) ?? this.#readGate()
  }

  #readGate(): Promise<GateSnapshot> {
    return translateErrors('reading the gate', () => this.#options.gate.read())
  }

  /** Writes the gate. @returns undefined if the gate has changed since it was read */
  #writeGate(what: string, { version }: GateSnapshot, record: GateRecord): Promise<GateSnapshot | undefined> {
    const { layout, committer, gate } = this.#options
    return committer
      .commit<GateSnapshot>({
        what,
        steps: gateSteps(layout, encodeGate(record), { version }),
        touches: [{ name: 'gate', mode: 'alone' }],
        onCommitted: ({ results: [set] }) =>
          gate.noteWritten({ ...record, version: set && 'version' in set ? set.version : version + 1 }),
        // Another client may have written it since.
        onRecovered: () => this.#readGate(),
        toRejection: (error) =>
          error instanceof BadVersion || error instanceof NoNode ? new GateChangedSignal() : error,
      })
      .catch((error: unknown) => {
        if (error instanceof GateChangedSignal) return undefined
        throw error
      })
  }

  /**
   * Pauses or resumes the board. The fence base of the gate is kept: the gate is written at the revision that was read,
   * or read and written again.
   *
   * @throws InvalidState for a gate whose base cannot be read
   */
  async set({ paused }: GateRequest): Promise<GateSnapshot> {
    const { gate, layout } = this.#options
    const what = paused ? 'pause of the board' : 'resumption of the board'
    let seen = gate.seen ?? (await translateErrors(what, () => gate.read()))
    while (true) {
      assertIntact(seen, layout.gate)
      const { fenceBase, limits } = seen
      const written = await this.#writeGate(what, seen, { paused, fenceBase, limits })
      if (written) return written
      seen = await translateErrors(what, () => gate.read())
    }
  }
}

/** Internal signal: the gate has changed since it was read; it is read and written again. */
class GateChangedSignal extends Error {}
