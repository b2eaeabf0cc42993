/**
 * The locks of this process. Only one operation on a job runs at a time, and no lock stays without an owner. If the
 * deletion of a lock is refused, or its answer is lost, it is tried again until the lock is deleted or its session has
 * ended. Until then no other operation on the job runs here: the deletion could hit the lock of the next claim.
 */
import { retry } from '../../../../core/async/retry.ts'
import { SessionExpired, type ZooKeeperDriver } from '../../../../zookeeper/index.ts'
import type { Steps } from './single-writes.ts'

export interface LocksOptions {
  readonly zookeeper: Pick<ZooKeeperDriver, 'session'>
  readonly steps: Steps
  readonly onError: (error: unknown) => void
}

export class Locks {
  readonly #options: LocksOptions
  readonly #busy = new Map<string, Promise<unknown>>()
  /** Locks that are still to be deleted. */
  readonly #pendingReleases = new Map<string, Promise<void>>()

  constructor(options: LocksOptions) {
    this.#options = options
  }

  /** Runs the work when earlier operations on the job, and deletions of its lock, are over. */
  async runExclusive<T>(id: string, work: () => Promise<T>): Promise<T> {
    const before = this.#busy.get(id) ?? Promise.resolve()
    const done = before.then(work)
    const over = done.then(
      () => this.#pendingReleases.get(id),
      () => this.#pendingReleases.get(id),
    )
    this.#busy.set(id, over)
    void over.finally(() => this.#busy.get(id) === over && this.#busy.delete(id))
    return done
  }

  /** Releases the lock, in the background if the first attempt fails. @returns whether it is deleted already */
  async release(id: string, session: bigint): Promise<boolean> {
    const { steps, zookeeper, onError } = this.#options
    try {
      await steps.unlock(id, { session })
      return true
    } catch (error) {
      if (error instanceof SessionExpired || zookeeper.session?.id !== session) return true
      onError(error)
      this.#pendingReleases.set(id, this.#releaseLater(id, session))
      return false
    }
  }

  /**
   * Releases the lock if this session owns it; another session may own it. @returns whether no lock of this session is
   * left
   */
  async releaseIfOwned(id: string, session: bigint): Promise<boolean> {
    const ours = await this.#options.steps.isLockOwned(id, { session }).catch(() => false)
    return ours ? this.release(id, session) : true
  }

  async #releaseLater(id: string, session: bigint): Promise<void> {
    const { steps, zookeeper, onError } = this.#options
    const isOver = (error?: unknown) => error instanceof SessionExpired || zookeeper.session?.id !== session
    const unlock = async () => (isOver() ? undefined : steps.unlock(id, { session }))
    await retry(unlock, {
      ...{ firstPauseMs: 100, maxPauseMs: 10_000, failuresBefore: 1 },
      isRetryable: (error) => !isOver(error),
      onRetry: onError,
    }).catch((error: unknown) => {
      // The end of the session deletes the lock.
      if (!(error instanceof SessionExpired)) onError(error)
    })
    this.#pendingReleases.delete(id)
  }
}
