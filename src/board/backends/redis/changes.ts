/** Reports changes of the board, and of single jobs: the sink receives them from `commit/publications.ts` and from answers of scripts. */
import type { BackendChanges, JobStatus } from '../../contract/index.ts'
import type { RedisBoard } from './commit/board.ts'
import type { OwnerConnection } from './commit/owner-keys.ts'
import { sessionOverError } from './store/errors.ts'
import { decodeReply } from './store/replies.ts'
import { SCRIPTS } from './store/scripts.ts'

export class RedisChanges implements BackendChanges {
  readonly #board: RedisBoard
  /** The owner and connection that receive the changes of followed jobs. */
  #followingOn: OwnerConnection | undefined

  constructor(board: RedisBoard) {
    this.#board = board
  }

  async subscribe(): Promise<void> {
    const { session, publications } = this.#board.open
    const attached = session.requireAttached()
    const { channel } = this.#board.layout
    await attached.connection.subscribe(channel).catch(session.rethrow)
    try {
      const status = await session.renew(attached, undefined).catch(session.rethrow)
      if (!status || session.attached !== attached) throw sessionOverError(session.uri)
      publications.isSubscribed = true
      publications.begin(status)
    } catch (error) {
      await attached.connection.unsubscribe(channel)
      throw error
    }
  }

  async unsubscribe(): Promise<void> {
    if (!this.#board.opened) return
    const { session, publications } = this.#board.opened
    publications.end()
    await session.attached?.connection.unsubscribe(this.#board.layout.channel)
  }

  async follow(ids: readonly string[]): Promise<JobStatus[]> {
    const { session } = this.#board.open
    const attached = session.requireAttached()
    if (this.#followingOn !== attached) {
      await attached.connection.subscribe(this.#board.layout.channelOf(attached.id)).catch(session.rethrow)
      this.#followingOn = attached
    }
    if (session.attached !== attached) throw sessionOverError(session.uri)
    const answer = await this.#board.run(SCRIPTS.follow, [attached.id, '1', ...ids])
    const statuses = decodeReply<readonly unknown[]>(answer)
    return ids.map((_, index) => toJobStatus(statuses[index]))
  }

  /** Ends what {@link follow} began. An entry that stays is removed with its job. */
  async unfollow(ids: readonly string[]): Promise<void> {
    const attached = this.#board.opened?.session.requireAttached()
    if (attached) await this.#board.run(SCRIPTS.follow, [attached.id, '0', ...ids])
  }

  async barrier(): Promise<void> {
    await this.#board.open.keeper.refresh()
  }
}

/** Returns a status as the script `follow` returns it. */
function toJobStatus(status: unknown): JobStatus {
  if (!Array.isArray(status)) return status === 1 ? 'trashed' : 'gone'
  const [claimed, cancelled, revision] = status
  return { claimed: claimed === true, cancelled: cancelled === true, revision: Number(revision) }
}
