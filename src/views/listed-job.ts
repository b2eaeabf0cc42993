/** A job in a list of the board: its state, and why it waits as far as that is known without a request. */
import type { Entity, Job, LimitView, WaitingFor } from '../board/index.ts'
import {
  describeDeaths,
  describeMissingToken,
  isKnownToAny,
  isSuspect,
  type ListedJob,
  suspectReasonOf,
  toFlowReference,
  unservedReason,
} from '../board/internal.ts'

/** What a list knows besides its jobs. */
export interface ListContext {
  /** The time of the servers' clock. */
  readonly now: number
  readonly conductors: readonly Entity[]
  /** The times at which limits without a token have one again, by their keys. */
  readonly nextStarts: ReadonlyMap<string, Date>
}

/** The state of a job on the board. DELAYED: it waits for a time or for other jobs. */
export type OpenState = 'WAITING' | 'DELAYED' | 'RUNNING'

export function stateOf({ claimed, cancelRequested, waits, dueAt }: ListedJob, now: number): OpenState {
  if (claimed) return 'RUNNING'
  return !cancelRequested && (waits || dueAt > now) ? 'DELAYED' : 'WAITING'
}

/** Returns why the job waits: the reason that the board knows, or that no conductor has its flow or serves its queue, or that a limit has no token. */
export function reasonOf(
  listed: ListedJob,
  { conductors, nextStarts }: Pick<ListContext, 'conductors' | 'nextStarts'>,
): WaitingFor | undefined {
  const { job, claimed } = listed
  const reason = suspectReasonOf({ job, reason: listed.reason() }, conductors)
  if (reason || claimed) return reason
  const work = toFlowReference(listed.posting)
  if (work && !isKnownToAny(work, conductors))
    return { kind: 'flow', flow: work.flow, text: `no conductor has flow ${work.flow}` }
  const unserved = unservedReason(listed.posting, conductors)
  if (unserved) return unserved
  if (nextStarts.size === 0) return undefined
  for (const { key } of job.limits) {
    const until = nextStarts.get(key)
    if (until) return { kind: 'limit', key, limit: {}, used: 0, until, text: describeMissingToken(key, until) }
  }
  return undefined
}

/** Returns when limits that have no token now have one again, by their keys. */
export function nextStartsOf(limits: readonly LimitView[], now: number): ReadonlyMap<string, Date> {
  const uses = limits.flatMap(({ keys = [] }) => keys)
  return new Map(
    uses.flatMap(({ key, nextStart }) => (nextStart && nextStart.getTime() > now ? [[key, nextStart]] : [])),
  )
}

/** Returns a sentence that says that the last owners of an unclaimed job died; undefined unless the job is a suspect. */
export function deathsOf(job: Pick<Job, 'uuid' | 'attempts'>): string | undefined {
  return isSuspect(job) ? `${describeDeaths(job)}; nothing else is in its way` : undefined
}
