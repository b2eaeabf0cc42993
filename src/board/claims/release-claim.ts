/**
 * Takes a claim away from its owner, for a job whose owner lives and makes no progress.
 *
 * Released is the claim that was read, identified by the revision that it has written, in one transaction: a claim that has ended meanwhile is
 * refused, and so is a newer one. The owner receives the change as it receives a lock that was removed by hand: `claim.lost` fires. It may still
 * work for a moment while the next owner has the job: the logbook accepts only the newest run, and other systems compare fences.
 *
 * The attempt does not count: nothing is known of it that would be the fault of the job. A job that must not survive its owner
 * (`onOwnerLost: 'fail'`) goes to the trash, as if the owner had died.
 */
import { Conflict, NotFound, Unclaimable, UnsupportedCapability } from '../../core/errors.ts'
import type { Backend, DiscardRequest, StoredJob } from '../contract/index.ts'
import { refusalError } from '../contract/refusals.ts'
import { Job } from '../jobs/job.ts'
import { endAttempt, type RecordedAttempt } from '../model/attempts.ts'
import type { JobEntry } from '../model/entry.ts'
import type { Posting } from '../model/posting/posting.ts'
import type { LiveView } from '../view/live-view.ts'
import type { ReleaseOptions } from './claim-options.ts'

/** The claim that was released. */
export interface ReleasedClaim {
  /** The owner that had the job. */
  readonly owner: string
  readonly run: number
  /** Whether the job went to the trash, because it must not survive its owner. */
  readonly trashed: boolean
}

export interface ReleaseContext {
  readonly backend: Pick<Backend, 'changes' | 'shared' | 'claims' | 'jobs' | 'uri'>
  readonly view: Pick<LiveView, 'applyOwnChange'>
  /** The name of the board object that releases. */
  readonly who: string
  /** Returns the posting with the settings of its flow. @throws NotConnected */
  withSettings(posting: Posting): Promise<Posting>
  discard(job: Pick<JobEntry, 'stored'>, discarded: Omit<DiscardRequest, 'who' | 'history'>): Promise<void>
}

/** A job whose newest attempt has no end, because it runs, or because its owner died. */
interface RunningJob {
  readonly stored: StoredJob
  readonly attempt: RecordedAttempt
}

/**
 * Takes the claim of the job away from its owner.
 *
 * @throws UnsupportedCapability; NotFound if the job has left the board or is unclaimed; Conflict if another run has it
 */
export async function releaseClaim(
  job: Job,
  { reason, run }: ReleaseOptions,
  context: ReleaseContext,
): Promise<ReleasedClaim> {
  const { backend, view, who, withSettings } = context
  // Other programs do not notice that a claim was taken away: they would go on beside the next owner.
  if (backend.shared)
    throw new UnsupportedCapability(
      `release of ${job}: ${backend.uri} does not support release; cancel the job, or end the process that runs it`,
      { capability: 'release' },
    )
  const entry = Job.entryFor(job)
  // What is read from now on is at least as new as this call.
  await backend.changes.barrier()
  const { stored, attempt } = await readRunning(job, backend)
  const { id, revision } = stored
  const { runs } = stored.posting
  if (run !== undefined && run !== runs)
    throw new Conflict(`release of ${job}: run ${runs} of ${attempt.who} has it, not run ${run}; nothing was changed`)
  const by = reason === undefined ? `released by ${who}` : `released by ${who}: ${reason}`
  const { onOwnerLost } = await withSettings(stored.posting)
  const mustFail = onOwnerLost === 'fail'
  // An attempt without an end makes the next owner move the job to the trash: this process may end before it does so itself.
  const posting = mustFail ? stored.posting : endAttempt(stored.posting, { ended: 'returned', reason: by })
  const outcome = await backend.claims.release({ id, revision, posting })
  if (outcome !== 'released') throw await notReleasedError(job, backend)
  view.applyOwnChange(entry, 'released')
  const released = { owner: attempt.who, run: runs, trashed: mustFail }
  if (!mustFail) return released
  const { cancelRequested } = entry
  const request = { id, revision: revision + 1, posting, cancelRequested, reason: `its owner ${attempt.who} was ${by}` }
  await context.discard({ stored }, request).catch((error: unknown) => {
    if (!(error instanceof Unclaimable || error instanceof NotFound)) throw error
  })
  view.applyOwnChange(entry, 'trashed')
  return released
}

/** @throws NotFound if the job has left the board, or its newest attempt has ended */
async function readRunning(job: Job, backend: ReleaseContext['backend']): Promise<RunningJob> {
  const { id, ended } = Job.entryFor(job)
  const [found] = id === undefined || ended ? [] : await backend.jobs.read([id])
  if (!found) throw refusalError(`release of ${job}`, { why: 'gone' })
  if ('error' in found) throw found.error
  const attempt = found.posting.attempts.at(-1)
  if (attempt && attempt.ended === undefined) return { stored: found, attempt }
  throw unclaimedError(job)
}

/** Returns why a claim that was read could not be released. */
async function notReleasedError(job: Job, backend: ReleaseContext['backend']): Promise<Error> {
  await backend.changes.barrier()
  const running = await readRunning(job, backend).catch((error: unknown) => {
    if (error instanceof NotFound) return error
    throw error
  })
  if (running instanceof NotFound) return running
  const { stored, attempt } = running
  if ((await backend.claims.owner(stored.id)) === undefined) return unclaimedError(job)
  const now = `run ${stored.posting.runs} of ${attempt.who} has it now`
  return new Conflict(`release of ${job}: the claim has ended meanwhile, and ${now}; nothing was changed`)
}

function unclaimedError(job: Job): NotFound {
  return new NotFound(`release of ${job}: it is unclaimed, so there is no claim to release`)
}
