/**
 * The checkpoints of a run: what tasks save, and what they find that former runs have saved. A checkpoint is a field of its atom's record, so
 * that a save is a write of the claim's run like every other one: a run that is not the newest any more is refused.
 */
import { type FollowingSignal, rejectOnAbort } from '../core/async/abort.ts'
import { decode, roundTrip } from '../core/codec.ts'
import { type AtomNode, type ExecutionNode, encodeCheckpoint } from '../flow/index.ts'
import type { Ledger } from './ledger.ts'
import type { TransitionWriter } from './writer.ts'

export interface CheckpointsOptions {
  readonly ledger: Ledger
  readonly writer: TransitionWriter
  /** Fires when the right to run the flow is lost. */
  readonly halt: FollowingSignal
}

export class Checkpoints {
  readonly #options: CheckpointsOptions

  constructor(options: CheckpointsOptions) {
    this.#options = options
  }

  /** Returns a copy of the saved value: the task may change it, and the record must not change with it. */
  read({ atom }: AtomNode): unknown {
    return roundTrip(this.#options.ledger.atom(atom.name).checkpoint?.value)
  }

  /**
   * Saves a value; resolves when it is on record. Saves during a write go out together with the next one, the newest of each task.
   *
   * @throws InvalidArgument, PayloadTooLarge for the value; the errors of the write, after which nothing of this run is written any more
   */
  async save({ atom }: AtomNode, value: unknown): Promise<void> {
    const { ledger, halt } = this.#options
    const plain = decode(encodeCheckpoint(value, `the checkpoint of ${atom.kind} ${atom.name}`), 'msgpack')
    halt.throwIfAborted()
    ledger.annotate(atom.name, { checkpoint: plain === undefined ? undefined : { value: plain, at: new Date() } })
    await rejectOnAbort(this.#record(), halt)
  }

  async #record(): Promise<void> {
    const { writer, halt } = this.#options
    try {
      await writer.record()
    } catch (error) {
      halt.abort(error)
      throw error
    }
  }
}

/**
 * Removes the checkpoints that say something about work which is done anew: the checkpoints of atoms that run again after a task that runs again, or
 * with another value of a retry. The checkpoint of a task whose own `revert` has run is removed by that.
 *
 * @param again the nodes that are executed again
 * @param retry the retry that begins its next attempt with them
 */
export function dropStaleCheckpoints(
  ledger: Ledger,
  again: Iterable<ExecutionNode>,
  { retry }: { readonly retry?: AtomNode } = {},
): void {
  const nodes = new Set(again)
  for (const node of nodes) {
    const name = node.atom?.name
    if (name === undefined || ledger.atom(name).checkpoint === undefined) continue
    const hasOtherValue = [...node.sources.values()].some((source) => source === retry || nodes.has(source))
    if (hasOtherValue || isAfterTask(node, nodes)) ledger.annotate(name, { checkpoint: undefined })
  }
}

/** Returns whether one of these nodes that is a task is before the node, directly or through others of them. */
function isAfterTask(node: ExecutionNode, nodes: ReadonlySet<ExecutionNode>): boolean {
  const seen = new Set<ExecutionNode>()
  const left = [node]
  for (let at = left.pop(); at; at = left.pop()) {
    for (const before of at.predecessors) {
      if (!nodes.has(before) || seen.has(before)) continue
      if (before.atom?.kind === 'task') return true
      seen.add(before)
      left.push(before)
    }
  }
  return false
}
