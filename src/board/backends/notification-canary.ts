/**
 * Notices that a server's notifications do not arrive, because a proxy, a pooler or an access list drops them. The board still works then,
 * but sees changes of other processes only when it reads the board periodically.
 *
 * A notification announces each change. So if a change was read, and no notification arrives for a whole period, one was dropped. A
 * notification that is only late is not counted, because the period is far longer than any delay.
 */
import { monotonic } from '../../core/time.ts'
import type { BackendSink } from '../contract/index.ts'

/** The shortest time to wait for a notification, in milliseconds, however often the board is read. */
const MIN_WAIT_MS = 500

/** The check of the notifications of one board. */
export class NotificationCanary {
  readonly #sink: Pick<BackendSink, 'health'>
  readonly #waitMs: number
  /** The time at which the first change was read after the last notification. */
  #readAt: number | undefined
  #isMissing = false

  /** @param options.period the time between two periodic reads of changes, in milliseconds */
  constructor({ sink, period }: { readonly sink: Pick<BackendSink, 'health'>; readonly period: number }) {
    this.#sink = sink
    this.#waitMs = Math.max(period, MIN_WAIT_MS)
  }

  /** Notes that a notification has arrived. */
  onAnnounced(): void {
    this.#readAt = undefined
    if (!this.#isMissing) return
    this.#isMissing = false
    this.#sink.health('notificationsArrive')
  }

  /** Notes that changes were read. */
  onRead(): void {
    this.#readAt ??= monotonic()
  }

  /** Reports a missed notification if a change was read a whole period ago and none has arrived since. */
  check(): void {
    if (this.#readAt === undefined || monotonic() - this.#readAt < this.#waitMs) return
    this.#readAt = undefined
    this.#isMissing = true
    this.#sink.health('notificationMissed')
  }

  /** Forgets that changes were read: a server does not announce changes that were made while there was no connection. */
  restart(): void {
    this.#readAt = undefined
  }
}
