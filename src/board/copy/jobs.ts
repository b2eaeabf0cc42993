/** Copies the jobs of a board, in the order of their posts. */
import { isDeepStrictEqual } from 'node:util'
import { asError, InvalidPosting, InvalidState, PayloadTooLarge } from '../../core/errors.ts'
import type { Posted, StoredJob } from '../backend.ts'
import type { Dependency } from '../model/dependencies.ts'
import type { Posting } from '../model/posting.ts'
import { type CopyWork, listIds, readPages, requirePart } from './sides.ts'
import { removeJob, type TargetContent } from './target.ts'

/** A job of the source that is on the target. */
interface CopiedJob {
  readonly uuid: string
  /** Its id on the target. */
  readonly id: string
}

export interface JobsToCopy extends CopyWork {
  readonly target: TargetContent
  /** The uuids of the batches that the source keeps. */
  readonly batches: ReadonlySet<string>
}

/** @throws NotConnected, OutcomeUnknown: the same command goes on */
export async function copyJobs(work: JobsToCopy): Promise<void> {
  const { from, signal, skip } = work
  const copied = new Map<string, CopiedJob>()
  let isReadable = true
  for await (const page of readPages(from.backend, await listIds(from.backend), signal)) {
    const underWay: Promise<void>[] = []
    for (const job of page) {
      if ('error' in job) {
        isReadable = false
        skip({ kind: 'jobs', name: job.id, error: job.error })
        continue
      }
      // A post that is under way may be of a job on which this job depends.
      if (job.waits) await settled(underWay.splice(0))
      underWay.push(copyJob(job, copied, work))
    }
    await settled(underWay)
  }
  // The uuid of a job that cannot be read is not known: its copy, which an earlier run has made, must not be taken for one that has left.
  if (isReadable) await removeOthers(copied, work)
}

/** Removes the jobs that an earlier copy has posted, and that have left the source since. */
async function removeOthers(copied: ReadonlyMap<string, CopiedJob>, { to, target, signal }: JobsToCopy): Promise<void> {
  const onSource = new Set([...copied.values()].map(({ uuid }) => uuid))
  const others = [...target.jobs].flatMap(([uuid, id]) => (onSource.has(uuid) ? [] : [id]))
  for await (const page of readPages(to.backend, others, signal))
    for (const job of page) if ('posting' in job) await removeJob(job, to)
}

/** Waits for all of them, also if one fails: none is under way afterwards. */
async function settled(underWay: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(underWay)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

async function copyJob(job: StoredJob, copied: Map<string, CopiedJob>, work: JobsToCopy): Promise<void> {
  const { from, target, batches, count, skip } = work
  const { uuid } = job.posting
  const there = target.jobs.get(uuid)
  try {
    if (there === undefined) {
      const after = job.waits ? await toDependencies(job, copied, work) : []
      const posting = toCopiedPosting(job, { now: from.backend.now(), batches })
      const id = await post(posting, after, work)
      target.jobs.set(uuid, id)
      copied.set(job.id, { uuid, id })
    } else {
      copied.set(job.id, { uuid, id: there })
      if (job.posting.key !== undefined && job.writtenAt !== job.postedAt) await updateReplaced(job, there, work)
    }
  } catch (error) {
    if (!isRefusal(error)) throw error
    skip({ kind: 'jobs', name: uuid, error: asError(error) })
    return
  }
  await copyCancellation(job, work)
  count('jobs', there === undefined ? 'copied' : 'present')
}

/**
 * Replaces the copy of a job that another post has replaced since: a paused board accepts posts. Only a post with a key does that, and keeps the uuid.
 *
 * @param id of the copy
 */
async function updateReplaced(job: StoredJob, id: string, { from, to, batches }: JobsToCopy): Promise<void> {
  const { backend } = to
  const [copy] = await backend.read([id])
  if (!copy || !('posting' in copy)) return
  const posting = toCopiedPosting(job, { now: from.backend.now(), batches })
  if (isDeepStrictEqual(withoutTimes(copy.posting), withoutTimes(posting))) return
  const taken = await backend.post({ posting })
  if (!('revision' in taken))
    throw new InvalidState(`job ${posting.uuid} (${posting.name}) has lost its key on the target`)
  const window = posting.keyFor === undefined ? {} : { window: posting.keyFor }
  const request = { id, revision: copy.revision, keyRevision: taken.revision, posting, ...window }
  await requirePart(backend.replace, 'keys').call(backend, request)
}

/** Returns what two copies of one job have in common, whenever they were made. */
function withoutTimes({ delay, keyFor, expiresAfter, replacedAfter, ...rest }: Posting): object {
  return rest
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
  const posted: Posted = await to.backend.post({ posting, ...(after.length > 0 ? { after } : {}) })
  if (posted.created && posted.id !== undefined) return posted.id
  const why =
    'uuid' in posted ? `its key is taken by job ${posted.uuid}` : 'a job on which it depends has left the board'
  throw new InvalidState(`job ${posting.uuid} (${posting.name}) cannot be copied: ${why}`)
}

/** @throws InvalidState if a job on which it depends was not copied */
async function toDependencies(
  { id, posting }: StoredJob,
  copied: ReadonlyMap<string, CopiedJob>,
  { from }: Pick<CopyWork, 'from'>,
): Promise<readonly Dependency[]> {
  const { backend } = from
  const { waitsFor } = await requirePart(backend.dependencies, 'dependencies').call(backend, id)
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
async function copyCancellation({ id, posting }: StoredJob, { from, to, target }: JobsToCopy): Promise<void> {
  const { uuid, name } = posting
  const request = await from.backend.cancellation(id)
  const copy = target.jobs.get(uuid)
  if (request && copy !== undefined)
    await to.backend.request({ kind: 'cancel', id: copy, job: `job ${uuid} (${name})`, ...request })
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
