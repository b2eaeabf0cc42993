/** A board of the dashboard, with its feed and the answers that were computed a moment ago. */
import type { BoardPause, EndedJob, Entity, JobBoard, LimitView } from '../../board/index.ts'
import { boardInternals, type FlowRules, MAX_HISTORY } from '../../board/internal.ts'
import { NotConnected } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { DashboardBoard } from '../options.ts'
import type { Unencoded } from '../wire/common.ts'
import type { WireBoard } from '../wire/session.ts'
import { AnswerCache } from './answer-cache.ts'
import { BoardFeed } from './board-feed.ts'
import { guardLogbooks, type Logbooks, toLogbooks } from './logbooks.ts'
import { slownessOf } from './slowness.ts'

export interface ViewedBoardOptions extends DashboardBoard {
  readonly name: string
  readonly log: Logger
  readonly onTopics: (topics: readonly string[]) => void
  /** Called when changes are not reported any more. */
  readonly onFeedClosed: () => void
}

type BoardParts = Pick<ViewedBoard, 'name' | 'board' | 'persistence' | 'feed' | 'cache'>

export class ViewedBoard {
  readonly name: string
  readonly board: JobBoard
  readonly persistence: Logbooks | undefined
  readonly feed: BoardFeed
  readonly cache: AnswerCache

  constructor({ name, board, persistence, feed, cache }: BoardParts) {
    this.name = name
    this.board = board
    this.persistence = persistence
    this.feed = feed
    this.cache = cache
  }

  /** Makes the view of a board, with a feed and a cache of its own. */
  static of({ name, board, persistence, log, onTopics, onFeedClosed }: ViewedBoardOptions): ViewedBoard {
    const cache = new AnswerCache()
    const onChange = () => cache.invalidate()
    const feed = new BoardFeed({ ...{ board, log, onTopics, onChange }, onClose: onFeedClosed })
    return new ViewedBoard({ name, board, feed, cache, persistence: persistence && toLogbooks(persistence, name) })
  }

  /** Returns the same view for a person to whom these boards are not shown: without their logbooks. */
  without(hidden: readonly ViewedBoard[]): ViewedBoard {
    const others = hidden.filter(({ persistence }) => persistence !== undefined).map(({ board }) => board)
    const { name, board, persistence, feed, cache } = this
    if (!persistence || others.length === 0) return this
    return new ViewedBoard({ name, board, feed, cache, persistence: guardLogbooks(persistence, { board, others }) })
  }

  /** What the dashboard can show. A board that is shared with TaskFlow has no limits, settings of flows, batches and history. */
  get supports(): WireBoard['supports'] {
    const isOwn = !this.board.shared
    return {
      limits: isOwn,
      flowSettings: isOwn,
      batches: isOwn,
      history: isOwn,
      logbooks: this.persistence !== undefined,
    }
  }

  /** Keeps the feed of the board open for another minute, because somebody asks for it. @throws NotConnected, AccessDenied */
  async touch(): Promise<void> {
    if (!this.board.connected) throw new NotConnected(`board ${this.name} is away: ${AWAY}`)
    await this.feed.touch()
  }

  /** Returns the conductors. They change seldom, so they are cached for some seconds. */
  conductors(): Promise<readonly Entity[]> {
    return this.cache.get('conductors', { minAgeMs: 1_000, maxAgeMs: 5_000 }, () => this.board.entities('conductor'))
  }

  /** Reads the limits and the use of their keys; empty if the board has none. Cached for some seconds. */
  limits(): Promise<readonly LimitView[]> {
    if (!this.supports.limits) return Promise.resolve([])
    return this.cache.get('limits', { minAgeMs: 1_000, maxAgeMs: 5_000 }, () => this.board.limits.list())
  }

  /** Reads the settings of flows; empty if the board has none. Cached for some seconds. */
  flowRules(): Promise<FlowRules> {
    return this.cache.get('flow rules', { minAgeMs: 1_000, maxAgeMs: 5_000 }, () => {
      return boardInternals(this.board).readFlowRules()
    })
  }

  /** Reads the history, newest first; empty if the board keeps none. Cached for some seconds. */
  async history(): Promise<readonly EndedJob[]> {
    const read = () => this.board.history({ limit: MAX_HISTORY })
    return this.cache.get('history', { minAgeMs: 1_000, maxAgeMs: 5_000 }, read)
  }

  /** Computes how slow conductors are (see {@link slownessOf}): at most every ten seconds, because it reads up to 10,000 ended jobs. */
  slowness(): Promise<ReadonlyMap<string, number>> {
    const compute = async () => slownessOf(await this.history())
    return this.cache.get('slowness', { minAgeMs: 10_000, maxAgeMs: 30_000 }, compute)
  }

  /** Reads what the board is, and who has paused it. */
  async summary(): Promise<Omit<Unencoded<WireBoard>, 'level'>> {
    return {
      name: this.name,
      uri: this.board.uri,
      kind: kindOf(this.board.uri),
      paused: this.board.paused,
      pause: await this.#pause(),
      supports: this.supports,
    }
  }

  /** Reads who has paused the board; a board that is away is shown without it. */
  async #pause(): Promise<BoardPause | undefined> {
    const { board } = this
    if (!board.paused || !board.connected) return undefined
    const read = () => board.pauseOrigin().catch(() => undefined)
    return this.cache.get('pause', { minAgeMs: 1_000, maxAgeMs: 5_000 }, read)
  }

  async close(): Promise<void> {
    await this.feed.close()
    this.cache.clear()
  }
}

/** The text for a board that is away. The state of its session, such as `lost`, would read as if data were lost. */
const AWAY =
  'none of its servers serves this dashboard now: they cannot be reached, or have no majority. Its jobs are safe there; jobboard doctor says which server lacks what'

function kindOf(uri: string): WireBoard['kind'] {
  if (/^zookeepers?:/i.test(uri)) return 'zookeeper'
  if (/^postgres(ql)?:/i.test(uri)) return 'postgres'
  if (/^sqlite:/i.test(uri)) return 'sqlite'
  return /^rediss?(\+|:)/i.test(uri) ? 'redis' : 'memory'
}
