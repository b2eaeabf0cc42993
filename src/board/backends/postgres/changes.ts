/**
 * Changes of the board, and of single jobs: the feed, and the notifications that arrive over the connection of the session. `session.ts` calls
 * the methods that are about connections.
 */
import type { Notification, PostgresConnection } from '../../../postgres/index.ts'
import type { BackendChanges, JobStatus } from '../../contract/index.ts'
import type { BoardWriter } from './commit/writer.ts'
import { type FeedSource, type PostgresChangeFeed, parseFollowed } from './connection/feed.ts'
import type { Watches } from './connection/watches.ts'
import type { OwnSession, PostgresBoard } from './store/board.ts'
import { translateErrors } from './store/errors.ts'
import { jobNumbers } from './store/rows.ts'
import { channelName, sessionChannel } from './store/schema.ts'

export interface PostgresChangesOptions {
  readonly feed: PostgresChangeFeed
  readonly writer: Pick<BoardWriter, 'isOwn'>
  /** The watched kinds of records, and the watched batches. */
  readonly records: Watches
  readonly batches: Watches
}

export class PostgresChanges implements BackendChanges {
  readonly #board: PostgresBoard
  readonly #options: PostgresChangesOptions
  /** Whether changes are to be reported. */
  #isSubscribed = false
  /** Whether jobs were followed: then a change of the connection is a gap. */
  #isFollowing = false
  /** The connection that listens to notifications of the board. */
  #listening: PostgresConnection | undefined
  /** The connection that listens to notifications of followed jobs. */
  #followConnection: PostgresConnection | undefined

  constructor(board: PostgresBoard, options: PostgresChangesOptions) {
    this.#board = board
    this.#options = options
  }

  async subscribe(): Promise<void> {
    this.#board.assertOpen()
    const { feed } = this.#options
    const { sink, uri } = this.#board
    this.#isSubscribed = true
    try {
      const connection = this.#board.requireConnection()
      const session = this.#board.requireSession('subscribing')
      await translateErrors(`listening to ${uri}`, () => this.listenOn(connection))
      await translateErrors(`subscribing to ${uri}`, () => feed.attach(toFeedSource(connection, session)))
      sink.gap()
    } catch (error) {
      this.#isSubscribed = false
      feed.detach()
      throw error
    }
  }

  async unsubscribe(): Promise<void> {
    this.#isSubscribed = false
    if (!this.#board.isOpen) return
    this.#options.feed.detach()
    await this.#unlisten()
  }

  async follow(ids: readonly string[]): Promise<JobStatus[]> {
    this.#board.assertOpen()
    this.#isFollowing = true
    const { schema, number, uri } = this.#board
    const connection = this.#board.requireConnection()
    const { id } = this.#board.requireSession('following jobs')
    if (this.#followConnection !== connection) {
      const text = `LISTEN ${sessionChannel(schema, number, id)}`
      await translateErrors(`listening to ${uri}`, () => connection.query(text, []))
      this.#followConnection = connection
    }
    const text = 'SELECT @.follow($1, $2, $3) AS statuses'
    const values = [id, jobNumbers(ids)]
    const [row] = await translateErrors(`following jobs of ${uri}`, () => this.#board.query(text, values))
    const statuses = row?.['statuses']
    if (Array.isArray(statuses)) return statuses.map(toJobStatus)
    throw this.#board.notConnectedError('following jobs')
  }

  async unfollow(ids: readonly string[]): Promise<void> {
    const what = 'ending to follow jobs'
    const { id } = this.#board.requireSession(what)
    await this.#board.ask(what, 'SELECT @.unfollow($1, $2, $3)', [id, jobNumbers(ids)])
  }

  async barrier(): Promise<void> {
    const session = this.#board.requireSession('looking')
    await this.#options.feed.caughtUp()
    this.#board.assertOpen()
    if (this.#board.session !== session) throw this.#board.notConnectedError('looking')
  }

  // --- Connections of the session ---------------------------------------------------------------------------------

  /** Listens to what has to be reported, on a connection of the session. Errors are the driver's own. */
  async listenOn(connection: PostgresConnection): Promise<void> {
    const { records, batches } = this.#options
    const channels = [records, batches].filter(({ isEmpty }) => !isEmpty).map(({ channel }) => channel)
    for (const channel of channels) await connection.query(`LISTEN ${channel}`, [])
    if (!this.#listens) return
    this.#listening = connection
    await connection.query(`LISTEN ${this.#channel}`, [])
  }

  /**
   * Delivers changes from now on over this connection. Resolves when the sink has received what it has to know before.
   *
   * @param begin `attach` for a new session; `resume` for another connection of the session, over which the missed changes are read
   */
  async deliver(connection: PostgresConnection, session: OwnSession, begin: 'attach' | 'resume'): Promise<void> {
    const { feed } = this.#options
    if (this.#isSubscribed) await feed[begin](toFeedSource(connection, session))
    if (!this.#isSubscribed) feed.detach()
  }

  /** Notes that a connection belongs to the session now: the board may have been unsubscribed while it was opened. */
  onAttached(): void {
    if (!this.#listens) void this.#unlisten()
  }

  /** Reports what may have been missed without a connection: notifications of that time are lost. */
  reportMissed(): void {
    const { records, batches } = this.#options
    if (this.#isFollowing && !this.#isSubscribed) this.#board.sink.gap()
    else records.report()
    batches.report()
  }

  onNotification({ channel, backend, payload }: Notification): void {
    const { feed, writer, records, batches } = this.#options
    if (channel === records.channel) records.report(payload)
    else if (channel === batches.channel) batches.report(payload)
    else if (channel !== this.#channel) this.#board.sink.followed(parseFollowed(payload))
    else {
      feed.onAnnounced()
      // For requests of this process, the feed is read before the caller receives the answer.
      if (!writer.isOwn(backend)) void feed.caughtUp()
    }
  }

  /** Whether a connection has to listen to notifications of the board. */
  get #listens(): boolean {
    return (this.#board.options.listen ?? true) && this.#isSubscribed
  }

  get #channel(): string {
    return channelName(this.#board.schema, this.#board.number)
  }

  /** Stops listening to the board. Without a connection there is nothing to stop. */
  async #unlisten(): Promise<void> {
    const { connection, session } = this.#board
    if (!connection || !session) return
    const muting = this.#options.feed.mute(toFeedSource(connection, session))
    // Sent at once, not after the answer to the first request: a later subscription must find its requests after both.
    const unlistening = this.#listening === connection ? connection.query(`UNLISTEN ${this.#channel}`, []) : undefined
    this.#listening = undefined
    await Promise.allSettled([muting, unlistening])
  }
}

function toFeedSource(connection: PostgresConnection, { id }: OwnSession): FeedSource {
  return { connection, session: id, onError: (error) => connection.disconnect(error) }
}

/** Converts a status as the SQL function `follow` returns it. */
function toJobStatus(status: unknown): JobStatus {
  if (!Array.isArray(status)) return status === 'trashed' ? 'trashed' : 'gone'
  const [claimed, cancelled, revision] = status
  return { claimed: claimed === true, cancelled: cancelled === true, revision: Number(revision) }
}
