/**
 * Receives what the scripts publish, and reports it to the sink. Publications may be lost, and other clients can send any: a message that
 * is not signed, or that is ahead of others, is only a hint to ask the board.
 */
import { asError } from '../../../../core/errors.ts'
import { startTimer } from '../../../../core/time.ts'
import { NotificationCanary } from '../../notification-canary.ts'
import type { RedisConnection } from '../store/connection.ts'
import { type FeedPosition, RedisChangeFeed, toFollowedChanges } from '../store/feed.ts'
import { parseRecordField, WATCHABLE, type Watchable } from '../store/layout.ts'
import { parsePublication } from '../store/replies.ts'
import type { BoardContext } from './context.ts'
import type { OwnerStatus } from './owner-keys.ts'

/** The time that a received change waits for missing earlier ones before the board is asked, in milliseconds. */
const HOLE_TIMEOUT_MS = 20
/** The pause between an unsigned publication and the request to the board, in milliseconds: a client may send any number of them. */
const UNSIGNED_PAUSE_MS = 50

export interface PublicationsOptions {
  /** Returns whether the session has a connection. */
  readonly isAttached: () => boolean
  /** Asks the board for changes. */
  readonly refresh: () => Promise<void>
}

export class Publications {
  readonly feed: RedisChangeFeed
  /** Whether changes are to be reported, on this connection and on later ones. */
  isSubscribed = false
  /** The secret that signs the publications of the scripts. */
  secret = ''
  /** The kinds of records, and the uuids of batches, whose changes are reported. */
  readonly watched: Readonly<Record<Watchable, Set<string>>> = { records: new Set(), batches: new Set() }
  readonly #context: BoardContext
  readonly #options: PublicationsOptions
  readonly #canary: NotificationCanary
  #refreshTimer: NodeJS.Timeout | undefined
  /** Whether an unsigned publication was received, so that the board must be asked for changes. */
  #isHinted = false
  #warnedOfUnsigned = false

  constructor(context: BoardContext, options: PublicationsOptions) {
    this.#context = context
    this.#options = options
    this.#canary = new NotificationCanary({ sink: context.sink, period: context.location.ttl / 3 })
    this.feed = new RedisChangeFeed(context.sink, this.#canary)
  }

  /** Subscribes a new connection to all channels whose messages are reported. */
  async connect(connection: RedisConnection): Promise<void> {
    const { layout } = this.#context
    if (this.isSubscribed) await connection.subscribe(layout.channel)
    for (const what of WATCHABLE) if (this.watched[what].size > 0) await connection.subscribe(layout.watchChannel(what))
  }

  /** Continues when the session is attached to a connection: publications of the time without one are lost. */
  attached(connection: RedisConnection, status: OwnerStatus): void {
    const { sink, layout } = this.#context
    if (this.isSubscribed) this.begin(status)
    else {
      // The board may have been unsubscribed since this connection was opened.
      void connection.unsubscribe(layout.channel)
      sink.gap()
      sink.paused(toFeedPosition(status).paused)
    }
    if (this.watched.records.size > 0) sink.records()
    if (this.watched.batches.size > 0) sink.batchChanged()
  }

  /** Begins to report the changes after this status. */
  begin(status: OwnerStatus): void {
    this.secret = status[8]
    this.#context.sink.jobCount(status[7])
    this.feed.begin(toFeedPosition(status))
  }

  /** Reports the changes that are in the status. */
  apply(status: OwnerStatus): void {
    this.feed.applyReply(status[2], toFeedPosition(status))
  }

  /** Ends the reports of changes until they begin again. */
  end(): void {
    this.isSubscribed = false
    this.feed.end()
    clearTimeout(this.#refreshTimer)
    this.#refreshTimer = undefined
  }

  /** Ends the reports of changes for good: the timer stays set, so that no other is started. */
  close(): void {
    clearTimeout(this.#refreshTimer)
    this.feed.end()
  }

  /**
   * Handles a publication. A message of the board's scripts contains the changes; any other message is only a hint to ask for
   * them. A socket's event calls this method, so an error that it throws would end the process.
   */
  receive(channel: string, message: Buffer): void {
    const { layout, sink } = this.#context
    const watched = WATCHABLE.find((what) => channel === layout.watchChannel(what))
    if (watched) {
      this.#onHint(watched, message.toString())
      return
    }
    const part = parsePublication(message, this.secret)
    try {
      if (channel !== layout.channel) {
        if (part) sink.followed(toFollowedChanges(part.entries))
        return
      }
      if (part) {
        this.#canary.onAnnounced()
        this.feed.applyMessage(part)
      } else this.#warnOfUnsigned(message)
    } catch (error) {
      sink.error(asError(error))
      sink.gap()
    }
    this.#isHinted ||= part === undefined
    this.#refreshSoon()
  }

  #onHint(what: Watchable, message: string): void {
    const { sink } = this.#context
    if (what === 'batches') {
      if (this.watched.batches.has(message)) sink.batchChanged(message)
      return
    }
    const name = parseRecordField(message)
    if (!name) sink.records()
    else if (this.watched.records.has(name.kind)) sink.records([name])
  }

  /** Schedules a refresh; one at a time, however many publications arrive. */
  #refreshSoon(): void {
    if (!this.#isHinted && !this.feed.hasHole) return
    const pause = this.#isHinted ? UNSIGNED_PAUSE_MS : HOLE_TIMEOUT_MS
    this.#refreshTimer ??= startTimer(() => void this.#refreshInBackground(), pause)
  }

  /** Asks the board for changes that were not published. */
  async #refreshInBackground(): Promise<void> {
    const { isAttached, refresh } = this.#options
    const isHinted = this.#isHinted
    this.#isHinted = false
    if (isAttached() && (isHinted || this.feed.hasHole)) await refresh().catch(() => undefined)
    this.#refreshTimer = undefined
    if (isAttached()) this.#refreshSoon()
  }

  #warnOfUnsigned(message: Buffer): void {
    // The secret is unknown until the board has answered, and an empty message only requests a refresh.
    if (this.#warnedOfUnsigned || !this.#options.isAttached() || message.length === 0) return
    this.#warnedOfUnsigned = true
    this.#context.log.warn(
      { channel: this.#context.layout.channel },
      'a publication is not signed with the secret of the board and was ignored: a process of an older release uses ' +
        'the board, or another client may publish on its channel; restrict the channels of its users (ACL SETUSER … resetchannels)',
    )
  }
}

function toFeedPosition([, version, , paused]: OwnerStatus): FeedPosition {
  return { version: Number(version), paused }
}
