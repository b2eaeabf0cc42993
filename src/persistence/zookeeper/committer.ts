/**
 * Changes of many flows in one multi. A multi names the operation that was refused: whoever it belongs to is told, and
 * the rest is sent again without.
 */
import { type CommitResult, GroupCommit } from '../../core/async/group-commit.ts'
import { NotConnected, StorageFailure } from '../../core/errors.ts'
import {
  BadArguments,
  InvalidAcl,
  type Op,
  RequestTooLarge,
  Unimplemented,
  type ZooKeeper,
  ZooKeeperError,
} from '../../zookeeper/index.ts'

/** What has to be done as a whole, or not at all. */
export type AtomicOps = readonly Op[]

/** Half of what servers take by default: what is around the data takes room as well. */
const MAX_BATCH = { items: 200, bytes: 2 ** 19 }

export class LogbookCommitter {
  readonly #zookeeper: ZooKeeper
  readonly #group: GroupCommit<AtomicOps, void>

  constructor(zookeeper: ZooKeeper) {
    this.#zookeeper = zookeeper
    this.#group = new GroupCommit({ commit: (batch) => this.#commit(batch), bytesOf: estimateBytes, limits: MAX_BATCH })
  }

  get idle(): Promise<void> {
    return this.#group.idle
  }

  /** @throws ZooKeeperError of the operation that was refused, or with an outcome that is not known */
  commit(change: AtomicOps): Promise<void> {
    return this.#group.add(change)
  }

  async #commit(batch: readonly AtomicOps[]): Promise<CommitResult<void>[]> {
    const outcomes: CommitResult<void>[] = batch.map(() => ({ value: undefined }))
    let left = batch.map((change, index) => ({ change, index }))
    while (left.length > 0) {
      try {
        await this.#zookeeper.multi(left.flatMap(({ change }) => change))
        return outcomes
      } catch (error) {
        if (!isRefusedForGood(error)) throw error
        const culprit = findCulprit(error, left)
        if (culprit === undefined) {
          // Nobody was named: each has its own.
          for (const { change, index } of left) outcomes[index] = await this.#commitAlone(change)
          return outcomes
        }
        outcomes[culprit] = { error }
        left = left.filter(({ index }) => index !== culprit)
      }
    }
    return outcomes
  }

  async #commitAlone(change: AtomicOps): Promise<CommitResult<void>> {
    return this.#zookeeper.multi(change).then(
      () => ({ value: undefined }),
      (error: unknown) => ({ error }),
    )
  }
}

/** Whether it is certain that nothing was changed, for a reason that lies in what was asked. */
function isRefusedForGood(error: unknown): boolean {
  return error instanceof ZooKeeperError && (error.outcome === 'refused' || error instanceof RequestTooLarge)
}

function findCulprit(error: unknown, left: readonly { change: AtomicOps; index: number }[]): number | undefined {
  if (!(error instanceof ZooKeeperError) || error.index === undefined) return undefined
  let end = 0
  for (const { change, index } of left) {
    end += change.length
    if (error.index < end) return index
  }
  return undefined
}

const OP_OVERHEAD_BYTES = 200

function estimateBytes(change: AtomicOps): number {
  return change.reduce(
    (sum, op) => sum + op.path.length + OP_OVERHEAD_BYTES + ('data' in op ? (op.data?.length ?? 0) : 0),
    0,
  )
}

/**
 * What lies in what was asked, and would be met again. Sessions and connections come back, what others have changed is read
 * anew, and a right or a quota that is missing is no fault of the job that met it.
 */
const FINAL_ERRORS = [BadArguments, InvalidAcl, RequestTooLarge, Unimplemented]

/** ZooKeeper's refusals and absences as errors of logbooks. */
export async function translateErrors<T>(doing: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ZooKeeperError || error instanceof NotConnected)) throw error
    const retryable = !FINAL_ERRORS.some((kind) => error instanceof kind)
    const large = 'return less, or keep what is large elsewhere and return where it is'
    const hint = error instanceof RequestTooLarge ? `; ${large}` : ''
    throw new StorageFailure(`cannot ${doing}: ${error.message}${hint}`, { cause: error, retryable })
  }
}
