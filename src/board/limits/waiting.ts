/**
 * Counts the jobs that wait, by the keys of their limits. The jobs are those of the board and not those of the queue of this process: a
 * process that claims nothing has no queue, and in a long board the queue contains the window only. A process that views the whole board
 * answers from memory, because its view lists the jobs; another one reads postings, and no more of them than {@link MAX_COUNTED_JOBS}.
 */
import type { LimitCost, LimitUse } from '../model/limits.ts'

/** The number of waiting jobs that are counted: each may have to be read. */
const MAX_COUNTED_JOBS = 20_000
/** The number of keys that are shown of each limit. */
const MAX_SHOWN_KEYS = 1_000

/** An unclaimed job, as `Job` describes it. */
export interface UnclaimedJob {
  readonly limits: readonly LimitCost[]
  readonly delayedUntil: Date | undefined
}

export interface WaitingCount {
  readonly byKey: ReadonlyMap<string, number>
  /** Whether there may be more jobs than were counted. */
  readonly isPartial: boolean
}

/** A key of a limit: what claims have taken of it, and how many jobs wait if they were counted. */
export interface KeyCount extends LimitUse {
  readonly waiting?: number
}

/** Counts the jobs whose delay is over. @param options.most how many jobs are read at most */
export async function countWaiting(
  jobs: AsyncIterable<UnclaimedJob>,
  { now, most = MAX_COUNTED_JOBS }: { readonly now: number; readonly most?: number },
): Promise<WaitingCount> {
  const byKey = new Map<string, number>()
  let read = 0
  for await (const { limits, delayedUntil } of jobs) {
    if (read >= most) return { byKey, isPartial: true }
    read += 1
    if (delayedUntil && delayedUntil.getTime() > now) continue
    for (const { key } of limits) byKey.set(key, (byKey.get(key) ?? 0) + 1)
  }
  return { byKey, isPartial: false }
}

/** Joins what claims have taken with the jobs that wait. Without a count of these, only the keys of claims are returned. */
export function joinCounts(uses: readonly LimitUse[], counted: WaitingCount | undefined): KeyCount[] {
  if (!counted) return [...uses]
  const { byKey } = counted
  const used = new Set(uses.map(({ key }) => key))
  const others = [...byKey.keys()].filter((key) => !used.has(key))
  return [
    ...uses.map((use) => ({ ...use, waiting: byKey.get(use.key) ?? 0 })),
    ...others.map((key) => ({ key, slots: 0, arrivalMs: undefined, waiting: byKey.get(key) ?? 0 })),
  ]
}

/** Returns what is shown of the jobs that wait for a limit; nothing if they were not counted. */
export function toWaiting(
  keys: readonly KeyCount[],
  counted: WaitingCount | undefined,
): { readonly waiting?: number; readonly waitingIsPartial?: true } {
  if (!counted) return {}
  const waiting = keys.reduce((sum, key) => sum + (key.waiting ?? 0), 0)
  return { waiting, ...(counted.isPartial ? { waitingIsPartial: true } : {}) }
}

/** Returns the keys that are shown: those with the most running jobs first, then those for which the most jobs wait. */
export function firstKeys<T extends { readonly key: string; readonly running: number; readonly waiting?: number }>(
  keys: readonly T[],
): T[] {
  const compare = (a: T, b: T) =>
    b.running - a.running || (b.waiting ?? 0) - (a.waiting ?? 0) || (a.key < b.key ? -1 : 1)
  return [...keys].sort(compare).slice(0, MAX_SHOWN_KEYS)
}
