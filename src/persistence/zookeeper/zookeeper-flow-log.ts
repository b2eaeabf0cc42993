/**
 * The right of one term to write one flow. A write is one multi:
 *
 *     check    the term's znode, which the next acquire removes
 *     setData  the flow, at the version that the previous write has left
 *     create or setData per atom that changed
 *
 * The check refuses every term but the newest; the version refuses a repetition of the same write, also a write that was in
 * flight when its connection broke and arrives late.
 */
import { type RetryOptions, retry } from '../../core/async/retry.ts'
import { asError, type ClaimLost, InvalidState, StorageFailure } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { BadVersion, NoNode, type Op, op, type ZooKeeper } from '../../zookeeper/index.ts'
import { FlowRecord, toWrittenAtom } from '../flow-record.ts'
import type { AtomDetail, FlowDetail } from '../models.ts'
import type { AcquireRequest, FlowLog, Transition } from '../persistence.ts'
import { supersededError } from '../requests.ts'
import { type AtomicOps, type LogbookCommitter, translateErrors } from './committer.ts'
import { atomPath, termPath } from './layout.ts'
import { readFlowRecord } from './reader.ts'
import { encodeAtom, encodeFlow } from './records.ts'

export interface ZooKeeperFlowLogOptions {
  readonly zookeeper: ZooKeeper
  readonly committer: LogbookCommitter
  readonly request: AcquireRequest
  readonly path: string
  readonly term: string
  /** The version of the flow's znode after the acquire. */
  readonly version: number
  readonly flow: FlowDetail
  /** The positions by the atoms' names. */
  readonly positions: ReadonlyMap<string, number>
  readonly retries: RetryOptions
  readonly assertOpen: () => void
}

interface FlowWrite {
  readonly number: number
  readonly change: AtomicOps
}

export class ZooKeeperFlowLog implements FlowLog {
  readonly flow: FlowDetail
  readonly #options: ZooKeeperFlowLogOptions
  readonly #record: FlowRecord
  readonly #positions: Map<string, number>
  #nextPosition: number
  #writes = 0
  #refusal: ClaimLost | Error | undefined
  #closed = false

  constructor(options: ZooKeeperFlowLogOptions) {
    this.flow = options.flow
    this.#options = options
    this.#record = new FlowRecord(options.flow)
    this.#positions = new Map(options.positions)
    this.#nextPosition = Math.max(-1, ...options.positions.values()) + 1
  }

  async write(transition: Transition): Promise<void> {
    if (this.#closed) throw new InvalidState(`the log of flow ${this.flow.uuid} is closed`)
    if (this.#refusal) throw this.#refusal
    this.#options.assertOpen()
    const write = this.#toWrite(transition)
    try {
      const what = `write to the logbook of flow ${this.flow.uuid}`
      await retry((attempt) => translateErrors(what, () => this.#commit(write, attempt)), this.#options.retries)
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

  async #commit(write: FlowWrite, attempt: number): Promise<void> {
    if (attempt > 1 && (await this.#isDone(write))) return
    try {
      await this.#options.committer.commit(write.change)
    } catch (error) {
      if (!(error instanceof BadVersion || error instanceof NoNode)) throw error
      if (await this.#isDone(write)) return
      throw new StorageFailure(`flow ${this.flow.uuid}: an earlier write is not done yet`, { retryable: true })
    }
  }

  /** Returns whether a write was done. @throws ClaimLost when another term has the flow, or the flow was removed */
  async #isDone({ number }: FlowWrite): Promise<boolean> {
    const { zookeeper, path, term, request } = this.#options
    const caughtUp = zookeeper.sync(path)
    const [record, termExists] = await Promise.all([
      readFlowRecord(zookeeper, path),
      zookeeper.exists(termPath(path, term)),
      caughtUp,
    ])
    if (record?.term !== term) throw supersededError(request, record?.flow.run)
    if (!termExists) throw supersededError(request, undefined)
    return record.writes >= number
  }

  /**
   * Prepares a write. All checks come before the record is changed. @throws InvalidArgument when it is not plain data
   */
  #toWrite(transition: Transition): FlowWrite {
    const { path, term, version } = this.#options
    const copies = (transition.atoms ?? []).map((atom) => toWrittenAtom(atom))
    for (const atom of copies) encodeAtom(atom)
    const { state, meta } = transition
    if (meta) encodeFlow({ flow: { ...this.flow, meta }, term, writes: 0 })
    const at = new Date()
    const change = this.#record.applyWithChange({ at, ...defined({ state, meta }), atoms: copies })
    const { atoms: _apart, ...flow } = this.#record.detail
    this.#writes += 1
    const record = encodeFlow({ flow, term, writes: this.#writes })
    const ops: Op[] = [
      op.check(termPath(path, term)),
      op.setData(path, record, { version: version + this.#writes - 1 }),
      ...lastPerAtom(change.atoms).map((atom) => this.#atomOp(atom)),
    ]
    return { number: this.#writes, change: ops }
  }

  #atomOp(atom: AtomDetail): Op {
    const known = this.#positions.get(atom.name)
    if (known !== undefined) return op.setData(atomPath(this.#options.path, known), encodeAtom(atom))
    const position = this.#nextPosition
    this.#nextPosition += 1
    this.#positions.set(atom.name, position)
    return op.create(atomPath(this.#options.path, position), encodeAtom(atom))
  }
}

function lastPerAtom(atoms: readonly AtomDetail[]): AtomDetail[] {
  return [...new Map(atoms.map((atom) => [atom.name, atom])).values()]
}
