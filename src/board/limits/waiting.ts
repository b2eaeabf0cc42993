/**
 * Counts the jobs that wait, by the keys of their limits. It counts the jobs of the board and not the queue of this process: a
 * process that claims nothing has no queue, and on a long board the queue contains only the window. A process that views the whole board
 * counts in memory. Another one reads postings, at most {@link MAX_COUNTED_JOBS}.
 */
import { type LimitCost, type LimitUse, queueLimitKey } from '../model/limits.ts'

/** The maximum number of jobs that are counted: the posting of each may have to be read. */
const MAX_COUNTED_JOBS = 20_000
/** The maximum number of keys of a limit that are shown. */
const MAX_SHOWN_KEYS = 1_000

/** The properties of an unclaimed job that are needed to count it. */
export interface UnclaimedJob {
  readonly limits: readonly LimitCost[]
  readonly queue: string
  readonly delayedUntil: Date | undefined
}

export interface WaitingCount {
  readonly byKey: ReadonlyMap<string, number>
  /** Whether the board has more jobs than were counted. */
  readonly isPartial: boolean
}

/** The use of a key: what claims have taken, and how many jobs wait, if they were counted. */
export interface KeyCount extends LimitUse {
  readonly waiting?: number
}

/** Counts the jobs whose delay is over. @param options.most the maximum number of jobs that are read */
export async function countWaiting(
  jobs: AsyncIterable<UnclaimedJob>,
  { now, most = MAX_COUNTED_JOBS }: { readonly now: number; readonly most?: number },
): Promise<WaitingCount> {
  const byKey = new Map<string, number>()
  let read = 0
  for await (const { limits, queue, delayedUntil } of jobs) {
    if (read >= most) return { byKey, isPartial: true }
    read += 1
    if (delayedUntil && delayedUntil.getTime() > now) continue
    for (const key of [...limits.map(({ key }) => key), queueLimitKey(queue)]) byKey.set(key, (byKey.get(key) ?? 0) + 1)
  }
  return { byKey, isPartial: false }
}

/** Adds the numbers of waiting jobs to what claims have taken. If the jobs were not counted, returns only what claims have taken. */
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

/** Returns the number of jobs that wait for a limit, as it is shown; nothing if the jobs were not counted. */
export function toWaiting(
  keys: readonly KeyCount[],
  counted: WaitingCount | undefined,
): { readonly waiting?: number; readonly waitingIsPartial?: true } {
  if (!counted) return {}
  const waiting = keys.reduce((sum, key) => sum + (key.waiting ?? 0), 0)
  return { waiting, ...(counted.isPartial ? { waitingIsPartial: true } : {}) }
}

/** Returns the keys that are shown, ordered by running jobs, then by waiting jobs, the most first. */
export function firstKeys<T extends { readonly key: string; readonly running: number; readonly waiting?: number }>(
  keys: readonly T[],
): T[] {
  const compare = (a: T, b: T) =>
    b.running - a.running || (b.waiting ?? 0) - (a.waiting ?? 0) || (a.key < b.key ? -1 : 1)
  return [...keys].sort(compare).slice(0, MAX_SHOWN_KEYS)
}
