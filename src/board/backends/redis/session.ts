/** Opens and closes the session, whose parts are in `commit/`. */
import { withinTime } from '../../../core/time.ts'
import type { BackendClock, BackendSession, BackendSink, LeaseWatch } from '../../contract/index.ts'
import type { RedisBoard } from './commit/board.ts'
import { StepCommitter } from './commit/committer.ts'
import type { BoardContext } from './commit/context.ts'
import { SessionKeeper } from './commit/keeper.ts'
import { CLOSE_TIMEOUT_MS, OwnerSession } from './commit/owner-session.ts'
import { Publications } from './commit/publications.ts'
import { Upkeep } from './commit/upkeep.ts'
import type { RedisTrash } from './trash.ts'

export class RedisSession implements BackendSession {
  readonly timeout: number
  readonly #board: RedisBoard
  readonly #trash: Pick<RedisTrash, 'forgetIndex'>
  readonly #upkeep: Upkeep

  constructor(board: RedisBoard, trash: Pick<RedisTrash, 'forgetIndex'>) {
    this.timeout = board.location.ttl
    this.#board = board
    this.#trash = trash
    this.#upkeep = new Upkeep(board)
  }

  async open(sink: BackendSink, options: { signal: AbortSignal }): Promise<void> {
    const { location, layout, log, create } = this.#board
    const context: BoardContext = {
      ...{ location, layout, log, create, sink },
      damaged: (fault) => this.#board.reportDamage(fault),
      onUnfinished: () => this.#upkeep.finishEnds(),
      onInconsistent: () => this.#upkeep.repair(),
    }
    const publications: Publications = new Publications(context, {
      isAttached: () => session.attached !== undefined,
      refresh: () => keeper.refresh(),
    })
    const session: OwnerSession = new OwnerSession(context, {
      publications,
      onAttached: () => {
        // A server that took over may not have the entries that the former one acknowledged last.
        this.#trash.forgetIndex()
        committer.attached()
      },
      onLost: (id) => {
        committer.sessionLost(id)
        keeper.wake()
      },
    })
    const keeper = new SessionKeeper(context, { session, publications })
    const committer = new StepCommitter(context, { session, publications })
    this.#board.opened = { sink, publications, session, keeper, committer }
    await keeper.open(options)
  }

  async close(): Promise<void> {
    if (!this.#board.opened) return
    const { keeper, committer } = this.#board.opened
    // Without a new connection the last group is never answered, so the wait is limited.
    await withinTime(CLOSE_TIMEOUT_MS, committer.idle())
    await keeper.close()
    // Rejects the steps that were requested meanwhile, and the unanswered steps.
    committer.sessionsEnded()
    await committer.idle()
  }

  /** Returns a watch that costs nothing: the lease is watched in any case. */
  watchLease(): LeaseWatch {
    const whenAlive = () => {
      const { session } = this.#board.open
      return session.isAttachedAlive ? undefined : session.whenAlive()
    }
    return { whenAlive, [Symbol.dispose]: () => undefined }
  }

  isAlive(session: string): boolean {
    return this.#board.opened?.session.isAlive(session) ?? false
  }

  leftMs(): number | undefined {
    return this.#board.opened?.session.leaseLeftMs
  }
}

export class RedisClock implements BackendClock {
  readonly #board: RedisBoard

  constructor(board: RedisBoard) {
    this.#board = board
  }

  now(): number {
    return this.#board.opened?.session.clock.now() ?? Date.now()
  }

  async read(): Promise<void> {
    // Each answer shows the time of the server, and there was one when the board was opened.
  }
}
