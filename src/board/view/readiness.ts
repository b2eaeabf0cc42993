/**
 * The states of an open view, and how callers wait for them.
 *
 * | the view is | when | until |
 * |---|---|---|
 * | subscribed | the backend reports changes (`subscription.ts`) | it is closed |
 * | current | it is subscribed, and was listed since the last gap (`resync.ts`): jobs may be chosen from it | the next gap, or it is closed |
 * | settled, for a caller | it is current, and every posting is read that had to be read at the time of the call | |
 * | entered | it was current, with all postings read, at least once since it was opened: it shows the board | it is closed |
 */
import type { Condition } from '../../core/async/abort.ts'
import type { Stoppable } from '../../core/async/abort-flag.ts'
import type { NotConnected } from '../../core/errors.ts'
import type { ReadList } from './content-reader.ts'
import type { JobFollower } from './job-follower.ts'
import type { Resync } from './resync.ts'
import type { Subscription } from './subscription.ts'

export interface ReadinessOptions {
  readonly subscription: Pick<Subscription, 'isSubscribed' | 'noteRead' | 'whenSubscribed'>
  readonly resync: Pick<Resync<unknown>, 'isDone'>
  readonly toRead: Pick<ReadList, 'requests' | 'hasRead'>
  readonly follower: Pick<JobFollower, 'suspend'>
  /** Notified whenever the view may have become current, or postings were read. */
  readonly changed: Condition
}

export class Readiness {
  readonly #options: ReadinessOptions
  #isEntered = false
  /** The error of the last listing that failed since the last gap. If the connection was lost, another gap follows. */
  #listError: NotConnected | undefined

  constructor(options: ReadinessOptions) {
    this.#options = options
  }

  /** Whether the view is complete, so that jobs may be chosen from it. */
  get isCurrent(): boolean {
    const { subscription, resync } = this.#options
    return subscription.isSubscribed && resync.isDone
  }

  /** Whether the board was listed, and its postings read, since the view was opened. */
  get isEntered(): boolean {
    return this.#isEntered
  }

  /** Resolves when the view is entered. @throws NotConnected, AccessDenied */
  async whenEntered(options: { signal?: Stoppable | undefined } = {}): Promise<void> {
    if (!this.#isEntered) await this.whenSettled(options)
  }

  /** Resolves when the view is settled. @throws NotConnected, AccessDenied if the view cannot be opened */
  async whenSettled(options: { signal?: Stoppable | undefined } = {}): Promise<void> {
    const { subscription, toRead, changed } = this.#options
    if (!this.#isEntered) await subscription.whenSubscribed(options)
    while (!this.isCurrent) {
      if (!this.#isEntered && this.#listError) throw this.#listError
      await changed.wait(options)
    }
    const { requests } = toRead
    while (!(this.isCurrent && toRead.hasRead(requests))) await changed.wait(options)
    this.enter()
  }

  /** Resolves when the listing under way is applied, and its postings are read; at once without a connection. */
  async whenListed(options: { signal?: Stoppable | undefined } = {}): Promise<void> {
    const { toRead, changed } = this.#options
    while (!this.isCurrent && !this.#listError) await changed.wait(options)
    const { requests } = toRead
    while (this.isCurrent && !toRead.hasRead(requests)) await changed.wait(options)
  }

  /** Notes that the view shows the board. From now on it receives every change, so no job is followed. */
  enter(): void {
    if (this.#isEntered) return
    const { subscription, follower } = this.#options
    this.#isEntered = true
    subscription.noteRead()
    follower.suspend()
  }

  onGap(): void {
    this.#listError = undefined
  }

  onListFailed(error: NotConnected): void {
    this.#listError = error
    this.#options.changed.notify()
  }

  onClosed(): void {
    this.#isEntered = false
  }
}
