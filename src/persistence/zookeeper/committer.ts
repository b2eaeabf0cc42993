/**
 * Commits changes of many flows in one multi. A failed multi names the refused operation: the change that contains it
 * receives the error, and the others are sent again.
 */
import { type CommitResult, ItemCommit } from '../../core/async/group-commit.ts'
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

/** Operations that are done all together or not at all. */
export type AtomicOps = readonly Op[]

const MAX_BATCH_ITEMS = 200
const MAX_BATCH_BYTES = 2 ** 19

export class LogbookCommitter {
  readonly #zookeeper: ZooKeeper
  readonly #group: ItemCommit<AtomicOps, void>

  constructor(zookeeper: ZooKeeper) {
    this.#zookeeper = zookeeper
    this.#group = new ItemCommit({
      commit: (group) => this.#commit(group),
      bytesOf: estimateBytes,
      // Half of what a server accepts, because the sizes are estimated.
      limits: () => ({ items: MAX_BATCH_ITEMS, bytes: Math.min(MAX_BATCH_BYTES, zookeeper.maxRequestBytes / 2) }),
    })
  }

  get idle(): Promise<void> {
    return this.#group.idle
  }

  /**
   * Commits a change together with others. @throws ZooKeeperError of the refused operation, or with an unknown outcome
   */
  commit(change: AtomicOps): Promise<void> {
    return this.#group.add(change)
  }

  async #commit(group: readonly AtomicOps[]): Promise<CommitResult<void>[]> {
    const outcomes: CommitResult<void>[] = group.map(() => ({ value: undefined }))
    let left = group.map((change, index) => ({ change, index }))
    while (left.length > 0) {
      try {
        await this.#zookeeper.multi(left.flatMap(({ change }) => change))
        return outcomes
      } catch (error) {
        if (!isRefusedForGood(error)) throw error
        const culprit = findCulprit(error, left)
        if (culprit === undefined) {
          // The error names no operation: each change is sent alone.
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

/** Returns whether it is certain that nothing was changed, because of the request itself. */
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
 * The errors of the request itself, which would occur again. Other errors are retryable: sessions and connections come
 * back, changes of others are read again, and a missing right or quota is not the fault of the job.
 */
const FINAL_ERRORS = [BadArguments, InvalidAcl, RequestTooLarge, Unimplemented]

/** Turns ZooKeeper's refusals and outages into errors of logbooks. */
export async function translateErrors<T>(doing: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ZooKeeperError || error instanceof NotConnected)) throw error
    const retryable = !FINAL_ERRORS.some((kind) => error instanceof kind)
    const large = 'return less data, or store large data elsewhere and return its location'
    const hint = error instanceof RequestTooLarge ? `; ${large}` : ''
    throw new StorageFailure(`cannot ${doing}: ${error.message}${hint}`, { cause: error, retryable })
  }
}
