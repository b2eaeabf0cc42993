/**
 * Delivers the log of changes to the sink, each change once and in order, from two sources. Answers of scripts contain all
 * missing changes in order; publications may arrive before the answers, late, or never.
 */
import type { BackendSink, BoardChange, QueueKey } from '../../../contract/index.ts'
import { PRIORITIES } from '../../../model/claim-order.ts'
import type { NotificationCanary } from '../../notification-canary.ts'
import { toOrder } from './layout.ts'

/** The state of the board after all delivered changes. */
export interface FeedPosition {
  readonly version: number
  readonly paused: boolean
}

/** The changes of a job that each letter of the log stands for. */
const CHANGES_BY_LETTER: Readonly<Record<string, readonly BoardChange['kind'][]>> = {
  C: ['updated', 'claimed'],
  H: ['holds'],
  A: ['updated', 'released'],
  L: ['released'],
  D: ['gone'],
  T: ['trashed', 'gone'],
  X: ['cancelled'],
}

const GATE_LETTER = 'G'
/** The letter of a job whose posting was replaced. */
const REPLACED_LETTER = 'U'
/**
 * The letters of a post, of a job that waits for others no more, and of one whose posting was replaced. The entry adds the rank, unless it is the
 * default, the due time, and the queue unless it is the default one: `Pjob42:1:1790000000000:bulk`.
 */
const PLACED_LETTERS: Readonly<Record<string, BoardChange['kind']>> = {
  P: 'posted',
  R: 'ready',
  [REPLACED_LETTER]: 'updated',
}

/** Limit of kept messages that are ahead of the seen version; with more, a message is missing for good. */
const MAX_MESSAGES_AHEAD = 100

interface FeedPart {
  readonly version: number
  readonly entries: readonly string[]
}

export class RedisChangeFeed {
  readonly #sink: BackendSink
  readonly #canary: NotificationCanary
  #seenVersion: number | undefined
  #ahead: FeedPart[] = []

  constructor(sink: BackendSink, canary: NotificationCanary) {
    this.#sink = sink
    this.#canary = canary
  }

  /** The version up to which all changes were delivered; undefined while the feed delivers nothing. */
  get seen(): number | undefined {
    return this.#seenVersion
  }

  /** Whether a change was received while an earlier one is missing. */
  get hasHole(): boolean {
    return this.#ahead.length > 0
  }

  /** Begins to deliver changes after this position. The sink lists the jobs; a pause is not part of a list, so it is reported here. */
  begin({ version, paused }: FeedPosition): void {
    this.#seenVersion = version
    this.#ahead = []
    this.#canary.restart()
    this.#sink.gap()
    this.#sink.paused(paused)
  }

  /** Stops the delivery until the feed begins again. */
  end(): void {
    this.#canary.restart()
    this.#seenVersion = undefined
    this.#ahead = []
  }

  /** Applies the answer of a script: all entries after the seen version, or false if the log does not reach back so far. */
  applyReply(entries: readonly string[] | false, position: FeedPosition): void {
    if (this.#seenVersion === undefined) return
    if (position.version > this.#seenVersion) this.#canary.onRead()
    this.#canary.check()
    if (entries === false) this.begin(position)
    else this.applyMessage({ entries, version: position.version })
  }

  /** Applies a publication: the newest entries of that version. */
  applyMessage(part: FeedPart): void {
    if (this.#seenVersion === undefined) return
    this.#ahead.push(part)
    for (let left = this.#ahead; ; left = this.#ahead) {
      this.#ahead = left.filter((known) => !this.#apply(known))
      if (this.#ahead.length === left.length) break
    }
    if (this.#ahead.length > MAX_MESSAGES_AHEAD) this.#ahead.shift()
  }

  /** Delivers the entries that are new. @returns false if earlier entries are missing */
  #apply({ entries, version }: FeedPart): boolean {
    const seen = this.#seenVersion
    if (seen === undefined) return true
    const known = seen - (version - entries.length)
    if (known < 0) return false
    if (version <= seen) return true
    this.#seenVersion = version
    this.#notify(known === 0 ? entries : entries.slice(known))
    return true
  }

  #notify(entries: readonly string[]): void {
    let batch: BoardChange[] = []
    for (const entry of entries) {
      const letter = entry.charAt(0)
      const id = entry.slice(1)
      if (letter === GATE_LETTER) {
        if (batch.length > 0) this.#sink.changes(batch)
        batch = []
        this.#sink.paused(id === '1')
        continue
      }
      const placed = PLACED_LETTERS[letter]
      if (placed) batch.push(toPlacedChange(placed, id))
      for (const kind of CHANGES_BY_LETTER[letter] ?? []) batch.push({ kind, id })
    }
    if (batch.length > 0) this.#sink.changes(batch)
  }
}

/** Returns the changes in entries of the log, of jobs that are followed. */
export function toFollowedChanges(entries: readonly string[]): BoardChange[] {
  return entries.flatMap((entry) => {
    const letter = entry.charAt(0)
    if (letter === REPLACED_LETTER) return { kind: 'updated', id: entry.slice(1).split(':', 1)[0] ?? '' }
    return (CHANGES_BY_LETTER[letter] ?? []).map((kind) => ({ kind, id: entry.slice(1) }))
  })
}

function toPlacedChange(kind: BoardChange['kind'], entry: string): BoardChange {
  // The default: due at once, with the default priority.
  if (!entry.includes(':')) return { kind, id: entry, at: toQueueKey(entry, { priority: 'NORMAL', dueAt: 0 }) }
  const [id = '', rank, dueAt = 0, ...queue] = entry.split(':')
  const priority = (rank === undefined ? undefined : PRIORITIES[Number(rank)]) ?? 'NORMAL'
  const position = { priority, dueAt: Number(dueAt) }
  return { kind, id, at: toQueueKey(id, queue.length === 0 ? position : { ...position, queue: queue.join(':') }) }
}

function toQueueKey(id: string, position: Pick<QueueKey, 'priority' | 'dueAt' | 'queue'>): QueueKey {
  return { id, order: toOrder(id), ...position }
}
