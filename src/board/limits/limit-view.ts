/** Limits as `board.limits` shows them. */
import { PatternMap } from '../../core/collections/pattern-map.ts'
import { defined } from '../../core/options.ts'
import { toDate } from '../../core/time.ts'
import { takeTokens, toArrivalAt } from '../model/limits.ts'
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
   * The keys whose slots or tokens claims have taken, at most 1,000. A key stays in the list until its tokens have come back. With
   * `waiting`, also the keys of jobs that wait.
   */
  readonly keys?: readonly LimitKeyUse[]
  /** The sum of `waiting` of all keys, if the jobs were counted. A job with two keys of a pattern counts twice. */
  readonly waiting?: number
  /** Set if the board has more than the 20,000 jobs that are read: then `waiting` is a lower bound. */
  readonly waitingIsPartial?: true
  /** The hold by which no job of the key starts now. */
  readonly held?: { readonly until?: Date; readonly reason?: string; readonly by: string; readonly since: Date }
  /** The board object that has set the limit, and the time; absent for a key that is only held. */
  readonly set?: { readonly by: string; readonly at: Date }
  /** The owner and version of its declaration; absent if no program declares it. */
  readonly declared?: { readonly owner: string; readonly version: number }
  /** The error if this release cannot read the limit: then this process starts no job of its keys. */
  readonly error?: Error
}

/** The options of `board.limits.list` and `show`. */
export interface LimitViewOptions {
  /** Whether to count the jobs that wait. This opens the view of the board, and reads postings that are not in it. False by default. */
  readonly waiting?: boolean
}

/** The slots and tokens that are taken of a key. */
export interface LimitKeyUse {
  readonly key: string
  /** The number of jobs that hold a slot, if a concurrency is set. */
  readonly running: number
  /** The time at which the next job may start, if the rate permits none now. */
  readonly nextStart?: Date
  /** The number of unclaimed jobs of the key whose delay is over, whatever they wait for; if the jobs were counted. */
  readonly waiting?: number
}

/** Returns a limit as users see it, from its record. */
export function toLimitView(record: ReadRecord<LimitRecord>): LimitView {
  if ('error' in record) return { key: record.id, error: record.error }
  const { by, at, declared, ...settings } = record.value
  return {
    key: record.id,
    ...settings,
    set: { by, at: toDate(at) },
    ...(declared && { declared: { owner: declared.owner, version: declared.version } }),
  }
}

/** Returns the use of the keys of a limit, and when the next job of each may start. */
export function toKeyUses({ rate }: LimitView, uses: readonly KeyCount[], now: number): Pick<LimitView, 'keys'> {
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

/** Returns a hold as users see it, from its record; undefined if it is over. */
export function toHeld(record: ReadRecord<HoldRecord>, now: number): LimitView['held'] {
  if ('error' in record) return { by: 'a newer release', since: new Date(0), reason: record.error.message }
  const { until, reason, by, at } = record.value
  if (until !== undefined && until <= now) return undefined
  return { by, since: toDate(at), ...defined({ until: until === undefined ? undefined : toDate(until), reason }) }
}

/** Returns the limits and holds by their keys and patterns. */
export function indexViews(views: readonly LimitView[]): PatternMap<LimitView> {
  return new PatternMap(views, ({ key }) => key)
}
