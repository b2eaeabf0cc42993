/** Limits as `board.limits` shows them. */
import { defined } from '../../core/options.ts'
import { toDate } from '../../core/time.ts'
import { isLimitOf, takeTokens, toArrivalAt } from '../model/limits.ts'
import type { ReadRecord } from '../records/record-store.ts'
import { type HoldRecord, type LimitRecord, toTokenRate } from './record.ts'
import { firstKeys, type KeyCount } from './waiting.ts'

/** A limit as `board.limits.list` shows it. */
export interface LimitView {
  /** The key, or a pattern such as `tenant/*`. */
  readonly key: string
  readonly concurrency?: number
  /** The starts in `perMs` milliseconds. */
  readonly rate?: { readonly limit: number; readonly perMs: number; readonly burst: number }
  /** Set for a pattern whose keys take turns. */
  readonly fair?: true
  /**
   * The keys of which claims have taken slots or tokens; of a pattern there may be many, and at most 1,000 are read. Tokens come back with
   * time: a key stays in the list for a while. With `waiting`, also the keys of jobs that wait.
   */
  readonly keys?: readonly LimitKeyUse[]
  /** The sum of `waiting` of all keys, if it was asked for; a job with two keys of a pattern counts for both. */
  readonly waiting?: number
  /** Set if the board has more jobs than are counted, which are 20,000: then at least so many wait. */
  readonly waitingIsPartial?: true
  /** The reason why no job of the key starts now. */
  readonly held?: { readonly until?: Date; readonly reason?: string; readonly by: string; readonly since: Date }
  /** The board object that has set it, and the time; absent for a key that is only held. */
  readonly set?: { readonly by: string; readonly at: Date }
  /** By whom and with which version it is declared; absent for one that no program declares. */
  readonly declared?: { readonly owner: string; readonly version: number }
  /** The error by which the limit cannot be read here: no job of its keys is started by this release. */
  readonly error?: Error
}

/** The options of `board.limits.list` and `show`. */
export interface LimitViewOptions {
  /** Whether to count the jobs that wait, too: it opens the view of the board and reads postings that are not in it. False by default. */
  readonly waiting?: boolean
}

/** The slots and tokens that are taken of a key. */
export interface LimitKeyUse {
  readonly key: string
  /** The number of jobs that hold a slot, where a concurrency is set. */
  readonly running: number
  /** The time at which the next job may start, if the rate permits none now. */
  readonly nextStart?: Date
  /** The number of jobs of the key that nobody has claimed and whose delay is over, whatever they wait for; if it was asked for. */
  readonly waiting?: number
}

/** Returns what a record says of a limit. */
export function toView(record: ReadRecord<LimitRecord>): LimitView {
  if ('error' in record) return { key: record.id, error: record.error }
  const { by, at, declared, ...settings } = record.value
  return {
    key: record.id,
    ...settings,
    set: { by, at: new Date(at) },
    ...(declared && { declared: { owner: declared.owner, version: declared.version } }),
  }
}

/** Returns what is taken of the keys of a limit, and when the next job of each may start. */
export function toKeys({ rate }: LimitView, uses: readonly KeyCount[], now: number): Pick<LimitView, 'keys'> {
  if (uses.length === 0) return {}
  const tokenRate = rate && toTokenRate(rate)
  const keys = uses.map(({ key, slots, arrivalMs, rate: takenBy, waiting }): LimitKeyUse => {
    const arrival = tokenRate && arrivalMs !== undefined ? toArrivalAt({ arrivalMs, rate: takenBy }, tokenRate, now) : 0
    const token = tokenRate && takeTokens(arrival, { ...tokenRate, cost: 1 }, now)
    const next = token && 'until' in token ? { nextStart: toDate(Math.ceil(token.until)) } : {}
    return { key, running: slots, ...next, ...defined({ waiting }) }
  })
  return { keys: firstKeys(keys) }
}

/** Returns the hold that a record says; undefined if it is over. */
export function toHeld(record: ReadRecord<HoldRecord>, now: number): LimitView['held'] {
  if ('error' in record) return { by: 'a newer release', since: new Date(0), reason: record.error.message }
  const { until, reason, by, at } = record.value
  if (until !== undefined && until <= now) return undefined
  return { by, since: new Date(at), ...defined({ until: until === undefined ? undefined : toDate(until), reason }) }
}

/** Returns the views that apply to the key, the most specific first. */
export function matching(key: string, views: readonly LimitView[]): LimitView[] {
  const rank = (view: LimitView) => (view.key === key ? Number.POSITIVE_INFINITY : view.key.length)
  return views.filter((view) => isLimitOf(view.key, key)).sort((a, b) => rank(b) - rank(a))
}
