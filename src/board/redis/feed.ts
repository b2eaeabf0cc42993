/**
 * What the sink hears: the log of changes, each once and in order, whichever way it came. Answers of scripts bring what was
 * missing, in order; what is published may come before them, late, or never.
 */
import type { Change, Sink } from '../backend.ts'
import { PRIORITIES, type Priority } from '../priority.ts'
import { orderOf } from './layout.ts'

/** How the board stands after all that was told. */
export interface Standing {
  readonly version: number
  readonly paused: boolean
}

/** A letter of the log, and what it says of the job. */
const MEANINGS: Readonly<Record<string, readonly Change['kind'][]>> = {
  C: ['updated', 'claimed'],
  A: ['updated', 'released'],
  L: ['released'],
  D: ['gone'],
  T: ['trashed', 'gone'],
  X: ['cancelled'],
}

const GATE = 'G'
/** With rank, where it is not the usual, and when it is due: `Pjob42:1:1790000000000`. */
const POSTED = 'P'

/** So many messages that are ahead of what was seen are kept; more than that, and something was missed for good. */
const MOST_AHEAD = 100

interface Part {
  readonly version: number
  readonly entries: readonly string[]
}

export class Feed {
  readonly #sink: Sink
  #seen: number | undefined
  #ahead: Part[] = []

  constructor(sink: Sink) {
    this.#sink = sink
  }

  /** The version up to which everything was told; undefined while nothing is told. */
  get seen(): number | undefined {
    return this.#seen
  }

  /** Whether something was heard of, and what came before it was not. */
  get hasHole(): boolean {
    return this.#ahead.length > 0
  }

  /** From here on everything is told; the sink lists what there was before, and a pause is on no list. */
  begin({ version, paused }: Standing): void {
    this.#seen = version
    this.#ahead = []
    this.#sink.gap()
    this.#sink.paused(paused)
  }

  /** Nothing is told any more until it begins again. */
  end(): void {
    this.#seen = undefined
    this.#ahead = []
  }

  /** What a script answered: all there is between what was seen and the version; false where the log does not go back so far. */
  answered(entries: readonly string[] | false, standing: Standing): void {
    if (this.#seen === undefined) return
    if (entries === false) this.begin(standing)
    else this.heard({ entries, version: standing.version })
  }

  /** What was published: the newest entries of that version. */
  heard(part: Part): void {
    if (this.#seen === undefined) return
    this.#ahead.push(part)
    for (let left = this.#ahead; ; left = this.#ahead) {
      this.#ahead = left.filter((known) => !this.#apply(known))
      if (this.#ahead.length === left.length) break
    }
    if (this.#ahead.length > MOST_AHEAD) this.#ahead.shift()
  }

  /** False where something comes before it that was not heard of. */
  #apply({ entries, version }: Part): boolean {
    const seen = this.#seen
    if (seen === undefined) return true
    const known = seen - (version - entries.length)
    if (known < 0) return false
    if (version <= seen) return true
    this.#seen = version
    this.#tell(known === 0 ? entries : entries.slice(known))
    return true
  }

  #tell(entries: readonly string[]): void {
    let batch: Change[] = []
    for (const entry of entries) {
      const letter = entry.charAt(0)
      const id = entry.slice(1)
      if (letter === GATE) {
        if (batch.length > 0) this.#sink.changes(batch)
        batch = []
        this.#sink.paused(id === '1')
        continue
      }
      if (letter === POSTED) batch.push(posted(id))
      for (const kind of MEANINGS[letter] ?? []) batch.push({ kind, id })
    }
    if (batch.length > 0) this.#sink.changes(batch)
  }
}

function posted(told: string): Change {
  // The usual: at once, with the usual priority.
  if (!told.includes(':')) return postedAt(told, { priority: 'NORMAL', dueAt: 0 })
  const [id = '', rank, dueAt = 0] = told.split(':')
  const priority = (rank === undefined ? undefined : PRIORITIES[Number(rank)]) ?? 'NORMAL'
  return postedAt(id, { priority, dueAt: Number(dueAt) })
}

function postedAt(id: string, standing: { readonly priority: Priority; readonly dueAt: number }): Change {
  return { kind: 'posted', id, at: { id, order: orderOf(id), ...standing } }
}
