/** Copies the jobs of a board, in the order of their posts. */
import { asError, InvalidPosting, InvalidState, NotFound, PayloadTooLarge, Unclaimable } from '../../core/errors.ts'
import type { Posted, StoredJob } from '../contract/index.ts'
import type { Dependency } from '../model/dependencies.ts'
import type { Posting } from '../model/posting/posting.ts'
import { type CopyWork, listIds, readPages } from './sides.ts'
import { removeJob, type TargetContent } from './target.ts'

/** A job of the source that is on the target. */
interface CopiedJob {
  readonly uuid: string
  /** The id of the copy on the target. */
  readonly id: string
}

export interface JobsToCopy extends CopyWork {
  readonly target: TargetContent
  /** The uuids of the batches that the source keeps. */
  readonly batches: ReadonlySet<string>
}

/**
 * Removes the jobs that an earlier copy has posted, and that have left the source since, from the target and from `target.jobs`. Removes none if a job of
 * the source cannot be read.
 */
export async function removeDeparted({ from, to, target, signal }: JobsToCopy): Promise<void> {
  if (target.jobs.size === 0) return
  const onSource = new Map<string, number>()
  for await (const page of readPages(from.backend, await listIds(from.backend), signal))
    for (const job of page) {
      // The uuid of a job that cannot be read is not known: its copy must not be taken for a job that has left.
      if ('error' in job) return
      const { uuid } = job.posting
      onSource.set(uuid, (onSource.get(uuid) ?? 0) + 1)
    }
  const idsToRemove = [...target.jobs].flatMap(([uuid, ids]) => ids.splice(onSource.get(uuid) ?? 0))
  for await (const page of readPages(to.backend, idsToRemove, signal))
    for (const job of page) if ('posting' in job) await removeJob(job, to)
}

/** Copies the jobs that are missing on the target. @throws NotConnected, OutcomeUnknown: call it again to continue */
export async function copyJobs(work: JobsToCopy): Promise<void> {
  const { from, signal, skip } = work
  const copied = new Map<string, CopiedJob>()
  for await (const page of readPages(from.backend, await listIds(from.backend), signal)) {
    const underWay: Promise<void>[] = []
    for (const job of page) {
      if ('error' in job) {
        skip({ kind: 'jobs', name: job.id, error: job.error })
        continue
      }
      // A post that is under way may be of a job on which this job depends.
      if (job.waits) await settled(underWay.splice(0))
      underWay.push(copyJob(job, copied, work))
    }
    await settled(underWay)
  }
}

/** Waits for all of them, also if one fails: none is under way afterwards. */
async function settled(underWay: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(underWay)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

/** Copies a job, or updates the copy that is there. */
async function copyJob(job: StoredJob, copied: Map<string, CopiedJob>, work: JobsToCopy): Promise<void> {
  const { target, count, skip } = work
  const { uuid } = job.posting
  const former = target.jobs.get(uuid)?.shift()
  let isNew = true
  try {
    const present = former === undefined ? undefined : await updateCopy(job, former, { copied, work })
    const id = present ?? (await postCopy(job, copied, work))
    copied.set(job.id, { uuid, id })
    isNew = present === undefined
    await copyCancellation(job, id, work)
  } catch (error) {
    if (!isRefusal(error)) throw error
    skip({ kind: 'jobs', name: uuid, error: asError(error) })
    return
  }
  count('jobs', isNew ? 'copied' : 'present')
}

/** Posts the copy of a job, and returns its id. @throws InvalidState, InvalidPosting, PayloadTooLarge */
async function postCopy(job: StoredJob, copied: ReadonlyMap<string, CopiedJob>, work: JobsToCopy): Promise<string> {
  const { from, batches } = work
  const after = job.waits ? await toDependencies(job, copied, work) : []
  return post(toCopiedPosting(job, { now: from.backend.clock.now(), batches }), after, work)
}

/**
 * Updates the copy of a job whose posting was replaced on the source, perhaps after it was copied: a paused board accepts posts. Only a post with the
 * same key replaces a posting; the uuid stays.
 *
 * @param id the id of the copy
 * @returns that id; undefined if the copy has left the target
 */
async function updateCopy(
  job: StoredJob,
  id: string,
  { copied, work }: { readonly copied: ReadonlyMap<string, CopiedJob>; readonly work: JobsToCopy },
): Promise<string | undefined> {
  const { from, to, batches } = work
  const { backend } = to
  const { key, runs } = job.posting
  if (key === undefined || job.writtenAt === job.postedAt || runs > 0) return id
  const [copy] = await backend.jobs.read([id])
  if (!copy) return undefined
  const posting = toCopiedPosting(job, { now: from.backend.clock.now(), batches })
  const after = job.waits ? await toDependencies(job, copied, work) : []
  // The key is taken by the copy: the refusal tells its revision. If the copy has left the target meanwhile, this is the new one.
  const posted = await backend.jobs.post({ posting, ...(after.length > 0 ? { after } : {}) })
  if (posted.created && posted.id !== undefined) return posted.id
  const what = `job ${posting.uuid} (${posting.name})`
  if (posted.created || !('revision' in posted) || posted.uuid !== posting.uuid || !('posting' in copy))
    throw new InvalidState(`${what} cannot be copied: its key is taken by another job`)
  const window = posting.keyFor === undefined ? {} : { window: posting.keyFor }
  const request = { id, revision: copy.revision, keyRevision: posted.revision, posting, ...window }
  try {
    await backend.keys.replace(request)
    return id
  } catch (cause) {
    if (!(cause instanceof Unclaimable || cause instanceof NotFound)) throw cause
    throw new InvalidState(`${what} cannot be copied: its former copy has changed on the target`, { cause })
  }
}

/** Whether the target refuses this job, and may take others. */
export function isRefusal(error: unknown): boolean {
  return [PayloadTooLarge, InvalidPosting, InvalidState].some((kind) => error instanceof kind)
}

/** Posts a job, and returns its id. @throws InvalidState if its key is taken */
export async function post(
  posting: Posting,
  after: readonly Dependency[],
  { to }: Pick<CopyWork, 'to'>,
): Promise<string> {
  const posted: Posted = await to.backend.jobs.post({ posting, ...(after.length > 0 ? { after } : {}) })
  if (posted.created && posted.id !== undefined) return posted.id
  const isTaken = posted.created || 'revision' in posted
  const holder = 'uuid' in posted && posted.uuid !== undefined ? `job ${posted.uuid}` : 'another job'
  const why = isTaken ? `its key is taken by ${holder}` : 'a job on which it depends has left the board'
  throw new InvalidState(`job ${posting.uuid} (${posting.name}) cannot be copied: ${why}`)
}

/** @throws InvalidState if a job on which it depends was not copied */
async function toDependencies(
  { id, posting }: StoredJob,
  copied: ReadonlyMap<string, CopiedJob>,
  { from }: Pick<CopyWork, 'from'>,
): Promise<readonly Dependency[]> {
  const { backend } = from
  const { waitsFor } = await backend.dependencies.of(id)
  return waitsFor.map((other) => {
    const job = copied.get(other)
    if (!job)
      throw new InvalidState(
        `job ${posting.uuid} (${posting.name}) cannot be copied: it depends on ${other}, which was not copied`,
      )
    const on = posting.after?.find(({ uuid }) => uuid === job.uuid)?.on
    return { id: job.id, on: on ?? 'done' }
  })
}

/** A cancel request outlives a pause: the job goes to the trash, or is reverted, when the board is resumed. */
async function copyCancellation({ id, posting }: StoredJob, copy: string, { from, to }: JobsToCopy): Promise<void> {
  const request = await from.backend.signals.cancellation(id)
  if (request) await to.backend.signals.cancel({ id: copy, job: `job ${posting.uuid} (${posting.name})`, ...request })
}

/**
 * Returns the posting as the target gets it. It is posted anew there, so durations that count from the post or the last write become what is left of
 * them, and no later post replaces it.
 *
 * @param options.batches the batches that are kept: a job may outlive its own, which then counts nothing
 */
export function toCopiedPosting(
  { posting, postedAt, writtenAt }: Pick<StoredJob, 'posting' | 'postedAt' | 'writtenAt'>,
  { now, batches }: { readonly now: number; readonly batches: ReadonlySet<string> },
): Posting {
  const { delay, keyFor, expiresAfter, replacedAfter, batch, ...rest } = posting
  const elapsed = Math.max(0, now - postedAt)
  const rested = delay === undefined ? 0 : delay - Math.max(0, now - writtenAt)
  const taken = keyFor === undefined ? 0 : keyFor - elapsed
  return {
    ...rest,
    ...(rested > 0 ? { delay: rested } : {}),
    ...(taken > 0 ? { keyFor: taken } : {}),
    ...(expiresAfter === undefined ? {} : { expiresAfter: Math.max(1, expiresAfter - elapsed) }),
    ...(replacedAfter === undefined ? {} : { replacedAfter: 0 }),
    ...(batch !== undefined && batches.has(batch) ? { batch } : {}),
  }
}
