/** Finds out why a job is not run, the most common question of operators. */
import { NotFound } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { formatDuration, toDate } from '../../core/time.ts'
import type { Backend, Entity } from '../contract/index.ts'
import type { Limits } from '../limits/limits.ts'
import { countTrailingDeaths } from '../model/attempts.ts'
import type { JobEntry } from '../model/entry.ts'
import {
  CONDUCTOR_KIND,
  type FlowReference,
  formatFlowReference,
  isKnownToAny,
  toFlowReference,
} from '../model/flow-reference.ts'
import { describeStop } from '../model/limit-stops.ts'
import { describeTakenSlots, isQueueKey, type LimitOrigin, queueLimitKey, toQueueOfKey } from '../model/limits.ts'
import type { Posting } from '../model/posting/posting.ts'
import type { KeptTokens, LimitBlocker } from '../queue/limit-lines.ts'
import type { ClaimQueue } from '../queue/queue.ts'
import { needsSuspectPlace, type SuspectPlace } from '../queue/suspect-place.ts'
import type { UnacceptedFlows } from '../view/unaccepted-flows.ts'
import { Job } from './job.ts'
import { readJobs } from './read-jobs.ts'
import { unservedReason } from './unserved.ts'

/** The reason why a job is not run; `text` is the reason for people. */
export type WaitingFor = { readonly text: string } /** `queue`: the queue that is paused alone. */ & (
  | { readonly kind: 'pause'; readonly queue?: string }
  | { readonly kind: 'delay'; readonly until: Date }
  /** Jobs that have to end before; `jobs` has the first of them, at most ten, as far as they can be read. */
  | { readonly kind: 'job'; readonly jobs: readonly Job[] }
  | {
      readonly kind: 'resource'
      readonly resource: string
      /** The job that holds the resource, or the first in its line. */
      readonly job?: Job
      /** The time since when that job holds it. */
      readonly since?: Date
      /** The program outside of the board that has locked it: its process on the database server, and the name of its connection. */
      readonly holder?: { readonly pid: number; readonly application: string }
    }
  | {
      readonly kind: 'limit'
      readonly key: string
      /** The limit that is set for the key. */
      readonly limit: {
        readonly concurrency?: number
        readonly rate?: { readonly intervalMs: number; readonly burst: number }
      }
      /** The number of jobs of the key that run. */
      readonly used: number
      /** The time from which a job can start as far as this limit is concerned, if it is known. */
      readonly until?: Date
      /** The origin of a stop or push-back of the key, or of a limit of 0 jobs at once; absent for a key that has no room now. */
      readonly stopped?: StoppedLimit
      /** The job before it for which the limit keeps its tokens, because it takes more of them than there are. */
      readonly job?: Job
    }
  | { readonly kind: 'flow'; readonly flow: string }
  /** The flow is disabled by the settings of `stopped.key`: a flow or a pattern. */
  | { readonly kind: 'disabled'; readonly flow: string; readonly stopped: StoppedLimit }
  /** There are conductors, and none of them serves the queue of the job. */
  | { readonly kind: 'queue'; readonly queue: string }
  /** The job is a suspect, and each process that could run it runs another suspect: the `holders`. */
  | { readonly kind: 'suspect'; readonly holders: readonly RunningSuspect[] }
  /** The servers have refused the last claim of this process, for example because of a quota, a missing right or a full memory. It is tried again. */
  | { readonly kind: 'refusal' }
)

/** The origin of a stop of a key, and its reason. */
export interface StoppedLimit {
  /** The key, or the pattern that it matches, as it was stopped. */
  readonly key: string
  readonly by: string
  readonly since: Date
  readonly reason?: string
}

/** The number of jobs that a reason names. */
const MAX_NAMED_JOBS = 10

export interface WaitingContext {
  readonly queue: Pick<ClaimQueue, 'blockedBy' | 'limitOf'>
  readonly paused: boolean
}

export interface FullWaitingContext extends WaitingContext {
  readonly queue: Pick<ClaimQueue, 'blockedBy' | 'limitOf' | 'keptFor'>
  readonly backend: Pick<Backend, 'jobs' | 'entities' | 'resources' | 'dependencies'>
  /** Returns the job with this id, whose posting may be unread. */
  readonly byId: (id: string) => JobEntry
  readonly unaccepted: Pick<UnacceptedFlows, 'applyConductors' | 'after'>
  /** The place for suspects of this process, and the name of this process as an owner. */
  readonly suspects: { readonly place: Pick<SuspectPlace, 'holder'>; readonly who: string }
}

/** Returns the reason that this process knows without a request; undefined if the job runs, has ended, or can be claimed. */
export function localReason(entry: JobEntry, { queue, paused }: WaitingContext): WaitingFor | undefined {
  if (entry.ended || entry.claimed) return undefined
  if (paused) return { kind: 'pause', text: 'the board is paused' }
  const { queuePlace } = entry
  if (queuePlace?.state === 'delayed' && queuePlace.stored.waits)
    return { kind: 'job', jobs: [], text: 'it waits for other jobs' }
  if (queuePlace?.state === 'delayed') {
    const until = toDate(queuePlace.dueAt)
    return { kind: 'delay', until, text: `it rests until ${until.toISOString()}` }
  }
  const blocker = queue.blockedBy(entry)
  if (blocker) return toResourceReason(blocker)
  const limit = queue.limitOf(entry)
  return limit && toLimitReason(limit)
}

/**
 * Returns the reason as {@link localReason} does, with the time since when a resource is held, or that no conductor knows the flow or serves the
 * queue.
 */
export async function waitingFor(entry: JobEntry, situation: FullWaitingContext): Promise<WaitingFor | undefined> {
  const { backend, queue, unaccepted } = situation
  const held = localReason(entry, situation)
  if (held?.kind === 'job') return readDependencies(entry, situation)
  if (entry.ended || entry.claimed || (held && held.kind !== 'resource')) return held
  const blocker = queue.blockedBy(entry)?.entry
  if (held && blocker?.claimed) {
    const since = await readClaimTime(blocker, backend)
    return since ? { ...held, since } : held
  }
  const conductors = await backend.entities.list(CONDUCTOR_KIND)
  // This may set aside the jobs before it.
  unaccepted.applyConductors(conductors)
  const still = localReason(entry, situation)
  const first = queue.blockedBy(entry)?.entry
  const unknown = isUnknownFlow(first ?? entry, conductors)
  const unserved = still || unknown || !entry.stored ? undefined : unservedReason(entry.stored.posting, conductors)
  if (unserved) return unserved
  const kept = still || unknown ? undefined : queue.keptFor(entry)
  if (kept) return toKeptReason(kept)
  if (!unknown) {
    const suspect = (first ?? entry).stored && suspectReason(first ?? entry, { conductors, ...situation.suspects })
    return withSuspect(still, suspect) ?? (await findOutsideHolder(entry, backend))
  }
  const text = `no conductor here knows flow ${formatFlowReference(unknown)}`
  if (!still) return { kind: 'flow', flow: unknown.flow, text }
  if (!first || still.kind !== 'resource') return still
  const until = `after ${formatDuration(unaccepted.after)} without one, others no longer wait for it`
  return { ...still, text: `${still.text}; ${text}: ${until}` }
}

/** Returns the reason that the job waits for others, with the first of them. */
async function readDependencies(
  { id = '' }: JobEntry,
  { backend, byId }: Pick<FullWaitingContext, 'backend' | 'byId'>,
): Promise<WaitingFor> {
  const { waitsFor } = await backend.dependencies.of(id)
  const jobs: Job[] = []
  for await (const job of readJobs(waitsFor.slice(0, MAX_NAMED_JOBS).map(byId), backend)) jobs.push(job)
  const others = waitsFor.length - jobs.length
  const names = [...jobs.map(String), ...(others > 0 ? [`${others} ${jobs.length > 0 ? 'more' : 'jobs'}`] : [])]
  return { kind: 'job', jobs, text: `it waits for ${names.length === 0 ? 'other jobs' : names.join(', ')}` }
}

function isUnknownFlow({ stored, claimed }: JobEntry, conductors: readonly Entity[]): FlowReference | undefined {
  const work = stored && !claimed ? toFlowReference(stored.posting) : undefined
  return work && !isKnownToAny(work, conductors) ? work : undefined
}

function toResourceReason({ resource, entry }: { resource: string; entry: JobEntry }): WaitingFor {
  if (!entry.stored) return { kind: 'resource', resource, text: `postings before it have not been read yet` }
  const job = new Job(entry)
  const how = entry.claimed ? 'is held by' : 'is wanted before it by'
  return { kind: 'resource', resource, job, text: `resource ${resource} ${how} ${job}` }
}

/** Returns the reason that another program has locked a resource of the job. */
async function findOutsideHolder(
  { stored }: JobEntry,
  backend: Pick<Backend, 'resources'>,
): Promise<WaitingFor | undefined> {
  const found = stored?.posting.resources && (await backend.resources.holder(stored.posting))
  if (!found) return undefined
  const { resource, pid, application } = found
  const who = `backend ${pid} of the database${application === '' ? '' : ` (${application})`}`
  return {
    ...{ kind: 'resource', resource, holder: { pid, application } },
    text: `resource ${resource} is locked by another program: ${who}`,
  }
}

/** Returns the reason that a limit of the job has no token now. This process knows that only if it claims jobs, so the limits are read. */
export async function readTokenReason(
  { limits: named, queue }: Pick<Job, 'limits' | 'queue'>,
  limits: Pick<Limits, 'show'>,
): Promise<WaitingFor | undefined> {
  for (const key of [...named.map(({ key }) => key), queueLimitKey(queue)]) {
    const view = await limits.show(key).catch((error: unknown) => {
      if (!(error instanceof NotFound)) throw error
    })
    const use = view?.keys?.find((one) => one.key === key)
    if (!view?.rate || !use?.nextStart) continue
    const { concurrency, rate } = view
    const limit = { ...defined({ concurrency }), rate: { intervalMs: rate.perMs / rate.limit, burst: rate.burst } }
    const text = describeMissingToken(key, use.nextStart)
    return { kind: 'limit', key, limit, used: use.running, until: use.nextStart, text }
  }
  return undefined
}

export function describeMissingToken(key: string, until: Date): string {
  return `limit ${key} has no token until ${until.toISOString()}`
}

function toKeptReason({ first, ...kept }: KeptTokens): WaitingFor {
  const job = new Job(first.entry)
  const reason = toLimitReason(kept)
  if (reason.kind !== 'limit') return reason
  return { ...reason, job, text: `${job} is before it, and takes more tokens: ${reason.text}` }
}

function toLimitReason({
  key,
  rule,
  used,
  until,
}: LimitBlocker): Extract<WaitingFor, { kind: 'limit' | 'pause' | 'disabled' }> {
  const { heldUntil, hold, closed, concurrency, rate } = rule
  if (hold?.flow !== undefined)
    return {
      kind: 'disabled',
      flow: hold.flow,
      stopped: toStopped(hold),
      text: describeStop(key, rule, { isHeld: true }),
    }
  const limit = defined({ concurrency, rate })
  const reason = {
    kind: 'limit',
    key,
    limit,
    used,
    ...(until === undefined ? {} : { until: toDate(Math.ceil(until)) }),
  } as const
  const isHeld = heldUntil !== undefined && heldUntil === (until ?? Number.POSITIVE_INFINITY)
  if (isHeld || concurrency === 0) {
    if (isHeld && until === undefined && isQueueKey(key))
      return { kind: 'pause', queue: toQueueOfKey(key), text: describeStop(key, rule, { isHeld }) }
    const origin = isHeld ? hold : closed
    const stopped = origin && toStopped(origin)
    return { ...reason, ...defined({ stopped }), text: describeStop(key, rule, { isHeld }) }
  }
  if (!reason.until) return { ...reason, text: describeTakenSlots(key, concurrency) }
  return { ...reason, text: describeMissingToken(key, reason.until) }
}

function toStopped({ id, by, at, reason }: LimitOrigin): StoppedLimit {
  return { key: id, by, since: toDate(at), ...defined({ reason }) }
}

/** A suspect that has the place for suspects of a process. */
export interface RunningSuspect {
  readonly uuid: string
  /** The owner: the process that runs it. */
  readonly owner: string
  readonly since?: Date
  /** The name of its board, if it is not the board of the waiting job. */
  readonly board?: string
}

/** Adds to the reason of a job that the job before it waits for a place for suspects. Without a reason, returns this one for the job itself. */
export function withSuspect(reason: WaitingFor | undefined, suspect: WaitingFor | undefined): WaitingFor | undefined {
  if (!reason || !suspect) return reason ?? suspect
  return reason.kind === 'resource' ? { ...reason, text: `${reason.text}, and ${suspect.text}` } : reason
}

/**
 * Returns the reason `suspect` if an unclaimed job is a suspect, and each process that could run it runs another suspect; undefined if a
 * place is free.
 */
export function suspectReason(
  { stored, claimed, cancelRequested }: Pick<JobEntry, 'stored' | 'claimed' | 'cancelRequested'>,
  { conductors, place, who = '' }: { readonly conductors: readonly Entity[] } & Partial<FullWaitingContext['suspects']>,
): WaitingFor | undefined {
  if (!stored || claimed || !needsSuspectPlace(stored.posting, { isCancelled: cancelRequested })) return undefined
  const work = toFlowReference(stored.posting)
  const able = work ? conductors.filter((conductor) => isKnownToAny(work, [conductor])) : conductors
  const own = place?.holder
  const found = able.map(toRunningSuspect)
  const holders = found.length > 0 || !own ? found : [{ uuid: own.uuid, owner: who, since: toDate(own.since) }]
  const taken = holders.flatMap((holder) => holder ?? [])
  if (taken.length === 0 || taken.length < holders.length) return undefined
  const names = taken.slice(0, MAX_NAMED_JOBS).map(({ uuid, owner, since, board }) => {
    return `job ${uuid}${board === undefined ? '' : ` of board ${board}`} in ${owner}${since ? ` since ${since.toISOString()}` : ''}`
  })
  const text = `${describeDeaths(stored.posting)}, and a process runs one such job at a time: it waits for ${names.join(', ')}`
  return { kind: 'suspect', holders: taken, text }
}

/** Adds to the known reason of a listed job that this job, or the job before it, waits for a place for suspects. */
export function suspectReasonOf(
  { job, reason }: { readonly job: Job; readonly reason: WaitingFor | undefined },
  conductors: readonly Entity[],
): WaitingFor | undefined {
  const waits = reason?.kind === 'resource' ? reason.job : reason ? undefined : job
  return withSuspect(reason, waits && suspectReason(Job.entryFor(waits), { conductors }))
}

/** Returns a sentence that says how many of the last owners of the job died. */
export function describeDeaths({ uuid, attempts }: Pick<Posting, 'uuid' | 'attempts'>): string {
  return `the last ${countTrailingDeaths(attempts)} owners of job ${uuid} died while they ran it`
}

/** Reads the suspect that a conductor runs. Another release may have written the entity. */
function toRunningSuspect({ name, metadata }: Entity): RunningSuspect | undefined {
  const { job, since, board }: Readonly<Record<string, unknown>> = Object(metadata['suspect'])
  if (typeof job !== 'string') return undefined
  const at = new Date(since instanceof Date || typeof since === 'string' ? since : Number.NaN)
  return {
    ...{ uuid: job, owner: name },
    ...(Number.isNaN(at.getTime()) ? {} : { since: at }),
    ...(typeof board === 'string' ? { board } : {}),
  }
}

/** Reads when the job was claimed: views do not read the postings that claims of other processes have written. */
async function readClaimTime({ id, stored }: JobEntry, backend: Pick<Backend, 'jobs'>): Promise<Date | undefined> {
  const [now] = id === undefined ? [] : await backend.jobs.read([id])
  const { posting } = now && 'posting' in now ? now : (stored ?? {})
  return posting?.attempts.at(-1)?.at
}
