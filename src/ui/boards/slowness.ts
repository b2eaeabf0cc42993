/**
 * Finds conductors that are slower than others. A mean over all jobs would compare conductors that run different flows, so run times are compared
 * flow by flow, with those of the same flow on other conductors.
 */
import type { EndedJob } from '../../board/index.ts'

/** The minimum number of jobs of a flow, on this conductor and on the others. */
const MIN_JOBS = 3
/** Shorter medians are not compared: they measure the board rather than the conductor. */
const MIN_MS = 20
/** The factor at which a conductor counts as slow. */
export const SLOW = 2

/**
 * Returns, for each conductor, its run times divided by those of the same flows on other conductors: the mean over its flows, weighted by their
 * jobs. A conductor is absent if no flow can be compared.
 */
export function slownessOf(history: readonly EndedJob[]): ReadonlyMap<string, number> {
  const sums = new Map<string, { ratios: number; jobs: number }>()
  for (const byOwner of durationsByFlow(history).values()) {
    // Sorted once for a flow: pods have new names each time, so there may be thousands of owners.
    const all = [...byOwner].flatMap(([who, durations]) => durations.map((ms) => ({ who, ms })))
    all.sort((a, b) => a.ms - b.ms)
    const places = new Map([...byOwner.keys()].map((who): [string, number[]] => [who, []]))
    for (const [place, { who }] of all.entries()) places.get(who)?.push(place)
    for (const [who, own] of byOwner) {
      if (own.length < MIN_JOBS || all.length - own.length < MIN_JOBS) continue
      const [mine, theirs] = [median(own), medianWithout(all, places.get(who) ?? [])]
      if (Math.min(mine, theirs) < MIN_MS) continue
      const sum = sums.get(who) ?? { ratios: 0, jobs: 0 }
      sum.ratios += (own.length * mine) / Math.max(1, theirs)
      sum.jobs += own.length
      sums.set(who, sum)
    }
  }
  return new Map([...sums].map(([who, { ratios, jobs }]) => [who, ratios / jobs]))
}

/** Returns the durations in milliseconds of the last runs of jobs that are done, by flow and owner. */
function durationsByFlow(history: readonly EndedJob[]): Map<string, Map<string, number[]>> {
  const byFlow = new Map<string, Map<string, number[]>>()
  for (const { flow, who, outcome, startedAt, endedAt } of history) {
    if (flow === undefined || startedAt === undefined || outcome !== 'COMPLETE') continue
    const byOwner = byFlow.get(flow) ?? new Map<string, number[]>()
    byFlow.set(flow, byOwner)
    const durations = byOwner.get(who) ?? []
    byOwner.set(who, durations)
    durations.push(Math.max(0, endedAt.getTime() - startedAt.getTime()))
  }
  return byFlow
}

/** Returns the median of the runs of all owners but one. @param places the places of its own runs, in order */
function medianWithout(all: readonly { readonly ms: number }[], places: readonly number[]): number {
  let place = Math.floor((all.length - places.length - 1) / 2)
  for (const own of places) {
    if (own > place) break
    place += 1
  }
  return all[place]?.ms ?? 0
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0
}
