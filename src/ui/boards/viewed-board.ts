/** A board of the dashboard, with what is followed of it and what was read of it a moment ago. */
import type { Entity, JobBoard } from '../../board/index.ts'
import { NotConnected } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { Persistence } from '../../persistence/index.ts'
import type { DashboardBoard } from '../options.ts'
import type { WireBoard } from '../wire/session.ts'
import { BoardFeed } from './board-feed.ts'
import { ShortMemory } from './short-memory.ts'

export interface ViewedBoardOptions extends DashboardBoard {
  readonly name: string
  readonly log: Logger
  readonly onTopics: (topics: readonly string[]) => void
}

export class ViewedBoard {
  readonly name: string
  readonly board: JobBoard
  readonly persistence: Persistence | undefined
  readonly feed: BoardFeed
  readonly memory = new ShortMemory()

  constructor({ name, board, persistence, log, onTopics }: ViewedBoardOptions) {
    this.name = name
    this.board = board
    this.persistence = persistence
    this.feed = new BoardFeed({ board, log, onTopics, onChange: () => this.memory.change() })
  }

  /** Follows the board for some time, because somebody looks at it. @throws NotConnected */
  async look(): Promise<void> {
    if (!this.board.connected) throw new NotConnected(`board ${this.name} is away: it is ${this.board.state}`)
    await this.feed.look()
  }

  /** Returns the conductors, which change seldom. */
  conductors(): Promise<readonly Entity[]> {
    return this.memory.get('conductors', { leastMs: 1_000, mostMs: 5_000 }, () => this.board.entities('conductor'))
  }

  get summary(): WireBoard {
    const { limits, records, batches, history } = this.board.capabilities
    return {
      name: this.name,
      uri: this.board.uri,
      kind: kindOf(this.board.uri),
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
    this.memory.clear()
  }
}

function kindOf(uri: string): WireBoard['kind'] {
  if (/^zookeepers?:/i.test(uri)) return 'zookeeper'
  if (/^postgres(ql)?:/i.test(uri)) return 'postgres'
  return /^rediss?(\+|:)/i.test(uri) ? 'redis' : 'memory'
}
