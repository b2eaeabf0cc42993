/**
 * What the sink hears: the log of changes, each once and in order, whichever way it came. Answers of scripts bring what was
 * missing, in order; what is published may come before them, late, or never.
 */
import type { BackendSink, BoardChange } from '../../backend.ts'
import { PRIORITIES, type Priority } from '../../model/priority.ts'
import { toOrder } from './layout.ts'

/** How the board stands after all that was told. */
export interface FeedPosition {
  readonly version: number
  readonly paused: boolean
}

/** A letter of the log, and what it says of the job. */
const CHANGES_BY_LETTER: Readonly<Record<string, readonly BoardChange['kind'][]>> = {
  C: ['updated', 'claimed'],
  A: ['updated', 'released'],
  L: ['released'],
  D: ['gone'],
  T: ['trashed', 'gone'],
  X: ['cancelled'],
}

const GATE_LETTER = 'G'
/** With rank, where it is not the usual, and when it is due: `Pjob42:1:1790000000000`. */
const POSTED_LETTER = 'P'

/** So many messages that are ahead of what was seen are kept; more than that, and something was missed for good. */
const MAX_MESSAGES_AHEAD = 100

interface FeedPart {
  readonly version: number
  readonly entries: readonly string[]
}

export class RedisChangeFeed {
  readonly #sink: BackendSink
  #seenVersion: number | undefined
  #ahead: FeedPart[] = []

  constructor(sink: BackendSink) {
    this.#sink = sink
  }

  /** The version up to which everything was told; undefined while nothing is told. */
  get seen(): number | undefined {
    return this.#seenVersion
  }

  /** Whether something was heard of, and what came before it was not. */
  get hasHole(): boolean {
    return this.#ahead.length > 0
  }

  /** From here on everything is told; the sink lists what there was before, and a pause is on no list. */
  begin({ version, paused }: FeedPosition): void {
    this.#seenVersion = version
    this.#ahead = []
    this.#sink.gap()
    this.#sink.paused(paused)
  }

  /** Nothing is told any more until it begins again. */
  end(): void {
    this.#seenVersion = undefined
    this.#ahead = []
  }

  /** What a script answered: all there is between what was seen and the version; false where the log does not go back so far. */
  applyReply(entries: readonly string[] | false, position: FeedPosition): void {
    if (this.#seenVersion === undefined) return
    if (entries === false) this.begin(position)
    else this.applyMessage({ entries, version: position.version })
  }

  /** What was published: the newest entries of that version. */
  applyMessage(part: FeedPart): void {
    if (this.#seenVersion === undefined) return
    this.#ahead.push(part)
    for (let left = this.#ahead; ; left = this.#ahead) {
      this.#ahead = left.filter((known) => !this.#apply(known))
      if (this.#ahead.length === left.length) break
    }
    if (this.#ahead.length > MAX_MESSAGES_AHEAD) this.#ahead.shift()
  }

  /** False where something comes before it that was not heard of. */
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
      if (letter === POSTED_LETTER) batch.push(toPostedChange(id))
      for (const kind of CHANGES_BY_LETTER[letter] ?? []) batch.push({ kind, id })
    }
    if (batch.length > 0) this.#sink.changes(batch)
  }
}

function toPostedChange(entry: string): BoardChange {
  // The usual: at once, with the usual priority.
  if (!entry.includes(':')) return toQueueKey(entry, { priority: 'NORMAL', dueAt: 0 })
  const [id = '', rank, dueAt = 0] = entry.split(':')
  const priority = (rank === undefined ? undefined : PRIORITIES[Number(rank)]) ?? 'NORMAL'
  return toQueueKey(id, { priority, dueAt: Number(dueAt) })
}

function toQueueKey(id: string, position: { readonly priority: Priority; readonly dueAt: number }): BoardChange {
  return { kind: 'posted', id, at: { id, order: toOrder(id), ...position } }
}
