/**
 * Locks of this process: one operation on a job after the other, and no lock stays that nobody means to hold. A lock whose
 * deletion was refused, or lost its answer, is tried again until it is gone or its session is; before that nothing else is
 * done with the job here, or the deletion could hit the lock of the next claim.
 */
import { backoffDelay, sleep } from '../../../../core/time.ts'
import { SessionExpired, type ZooKeeperDriver } from '../../../../zookeeper/index.ts'
import type { Steps } from './steps.ts'

export interface LocksOptions {
  readonly zookeeper: Pick<ZooKeeperDriver, 'session'>
  readonly steps: Steps
  readonly onError: (error: unknown) => void
}

export class Locks {
  readonly #options: LocksOptions
  readonly #busy = new Map<string, Promise<unknown>>()
  /** Locks that are still to go. */
  readonly #pendingReleases = new Map<string, Promise<void>>()

  constructor(options: LocksOptions) {
    this.#options = options
  }

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

  /** Whether it is gone by now; it goes in any case. */
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

  /** The same where it may be another's. */
  async releaseIfOwned(id: string, session: bigint): Promise<boolean> {
    const ours = await this.#options.steps.isLockOwned(id, { session }).catch(() => false)
    return ours ? this.release(id, session) : true
  }

  async #releaseLater(id: string, session: bigint): Promise<void> {
    const { steps, zookeeper, onError } = this.#options
    for (let attempt = 1; zookeeper.session?.id === session; attempt++) {
      await sleep(backoffDelay(attempt, { first: 100, max: 10_000 }))
      try {
        await steps.unlock(id, { session })
        break
      } catch (error) {
        if (error instanceof SessionExpired) break
        onError(error)
      }
    }
    this.#pendingReleases.delete(id)
  }
}
