/** A board of the dashboard, with its feed and the answers that were computed a moment ago. */
import type { EndedJob, Entity, JobBoard, LimitView } from '../../board/index.ts'
import { MAX_HISTORY } from '../../board/internal.ts'
import { NotConnected } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { Persistence } from '../../persistence/index.ts'
import type { DashboardBoard } from '../options.ts'
import type { WireBoard } from '../wire/session.ts'
import { AnswerCache } from './answer-cache.ts'
import { BoardFeed } from './board-feed.ts'

export interface ViewedBoardOptions extends DashboardBoard {
  readonly name: string
  readonly log: Logger
  readonly onTopics: (topics: readonly string[]) => void
  /** Called when changes are not reported any more. */
  readonly onFeedClosed: () => void
}

export class ViewedBoard {
  readonly name: string
  readonly board: JobBoard
  readonly persistence: Persistence | undefined
  readonly feed: BoardFeed
  readonly cache = new AnswerCache()

  constructor({ name, board, persistence, log, onTopics, onFeedClosed }: ViewedBoardOptions) {
    this.name = name
    this.board = board
    this.persistence = persistence
    this.feed = new BoardFeed({
      ...{ board, log, onTopics, onClose: onFeedClosed },
      onChange: () => this.cache.invalidate(),
    })
  }

  /** Keeps the feed of the board open for another minute, because somebody asks for it. @throws NotConnected, AccessDenied */
  async touch(): Promise<void> {
    if (!this.board.connected) throw new NotConnected(`board ${this.name} is away: it is ${this.board.state}`)
    await this.feed.touch()
  }

  /** Returns the conductors. They change seldom, so they are cached for some seconds. */
  conductors(): Promise<readonly Entity[]> {
    return this.cache.get('conductors', { minAgeMs: 1_000, maxAgeMs: 5_000 }, () => this.board.entities('conductor'))
  }

  /** Reads the limits and the use of their keys; empty if the board has none. Cached for some seconds. */
  limits(): Promise<readonly LimitView[]> {
    if (!this.board.capabilities.limits) return Promise.resolve([])
    return this.cache.get('limits', { minAgeMs: 1_000, maxAgeMs: 5_000 }, () => this.board.limits.list())
  }

  /** Reads the history, newest first; empty if the board keeps none. Cached for some seconds. */
  async history(): Promise<readonly EndedJob[]> {
    if (!this.board.capabilities.history) return []
    const read = () => this.board.history({ limit: MAX_HISTORY })
    return this.cache.get('history', { minAgeMs: 1_000, maxAgeMs: 5_000 }, read)
  }

  get summary(): WireBoard {
    const { limits, records, batches, history } = this.board.capabilities
    return {
      name: this.name,
      uri: this.board.uri,
      kind: kindOf(this.board.uri),
      paused: this.board.paused,
      supports: {
        limits,
        schedules: records,
        batches,
        history,
        logbooks: this.persistence !== undefined,
      },
    }
  }

  async close(): Promise<void> {
    await this.feed.close()
    this.cache.clear()
  }
}

function kindOf(uri: string): WireBoard['kind'] {
  if (/^zookeepers?:/i.test(uri)) return 'zookeeper'
  if (/^postgres(ql)?:/i.test(uri)) return 'postgres'
  return /^rediss?(\+|:)/i.test(uri) ? 'redis' : 'memory'
}
