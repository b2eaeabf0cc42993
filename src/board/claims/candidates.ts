/**
 * Decides which of the chosen jobs may be claimed. Jobs over a limit may not, once the attempts that an outage ended are marked; nor may jobs that
 * were not started in time.
 */
import { Unclaimable } from '../../core/errors.ts'
import { catchError, type Result, toFailed } from '../../core/result.ts'
import type { Backend, StoredJob } from '../contract/index.ts'
import { exceededLimit, markOutages, unendedIncarnations } from '../model/attempts.ts'
import { isDoomed } from '../model/dependencies.ts'
import type { QueuePlace } from '../model/entry.ts'
import { canExpire, isOverdue, listReservedFor } from '../model/expiry.ts'
import type { Posting } from '../model/posting/posting.ts'
import { hasDroppedDetails } from '../model/posting/posting-codec.ts'
import type { FlowRules } from '../settings/rules.ts'
import type { Incarnation } from './incarnation.ts'

/** A chosen job, with the posting by which limits are checked: attempts that an outage ended are marked as ended. */
export interface Candidate {
  readonly place: QueuePlace
  readonly posting: Posting
}

export interface Candidates {
  readonly within: readonly Candidate[]
  /** The jobs that are trashed instead of claimed: over a limit, expired, or doomed. */
  readonly over: readonly Candidate[]
  readonly refused: readonly { readonly place: QueuePlace; readonly error: Error }[]
}

export interface CandidateContext {
  readonly incarnation: Incarnation
  readonly backend: Pick<Backend, 'clock' | 'jobs'>
  /** The settings of flows, which replace options of postings. */
  readonly settings: FlowRules
}

/**
 * Sorts chosen jobs that may all be claimed, as is known without a request; undefined if one of them has to be examined. Nearly all jobs have never
 * run, cannot expire, and have their details in the view.
 */
export function sortPlain(places: readonly QueuePlace[], settings: FlowRules): Candidates | undefined {
  const within: Candidate[] = []
  for (const place of places) {
    const { posting } = place.stored
    const hasRun = posting.attempts.length > 0 || posting.maxAttempts < 1
    const mayExpire = canExpire(settings.applyTo(posting))
    if (hasRun || place.entry.cancelRequested || mayExpire || hasDroppedDetails(place.stored)) return undefined
    within.push({ place, posting })
  }
  return { within, over: NO_CANDIDATES, refused: NO_CANDIDATES }
}

const NO_CANDIDATES: readonly never[] = []

/** Sorts the chosen jobs. An error of one job affects no other. */
export async function sortCandidates(places: readonly QueuePlace[], context: CandidateContext): Promise<Candidates> {
  const read = await readWholePostings(
    places.map(({ stored }) => stored),
    context.backend,
  )
  const whole: Candidate[] = []
  const unread: Candidates['refused'][number][] = []
  for (const [index, place] of places.entries()) {
    const posting = read[index]
    if (posting && 'value' in posting) whole.push({ place, posting: posting.value })
    else if (posting) unread.push({ place, error: posting.error })
  }
  const { candidates, refused: doubtful } = await resolveOutages(whole, context)
  const { expired, undecided } = await findExpired(candidates, context)
  const refused = [...unread, ...doubtful, ...undecided]
  const hidden = new Set(undecided.map(({ place }) => place))
  const within: Candidate[] = []
  const over: Candidate[] = []
  for (const candidate of candidates) {
    if (hidden.has(candidate.place)) continue
    const limit = catchError(() => exceededLimit(context.settings.applyTo(candidate.posting)))
    const isOver =
      expired.has(candidate.place) || (candidate.place.entry.cancelRequested && isDoomed(candidate.posting))
    if ('value' in limit && limit.value === undefined && !isOver) within.push(candidate)
    else over.push(candidate)
  }
  return { within, over, refused }
}

/**
 * Returns the whole postings of jobs, as a write needs them. Reads a posting again if the view has not kept its details; sends no request
 * if the view has kept all of them. The result has an Unclaimable for a job that has another revision by now.
 */
export async function readWholePostings(
  jobs: readonly StoredJob[],
  backend: Pick<Backend, 'jobs'>,
): Promise<Result<Posting>[]> {
  const dropped = jobs.filter(hasDroppedDetails)
  if (dropped.length === 0) return jobs.map(({ posting }) => ({ value: posting }))
  const read = await backend.jobs.read(dropped.map(({ id }) => id)).catch(toFailed)
  const found = new Map(dropped.map((job, index) => [job, 'error' in read ? read : read[index]]))
  return jobs.map((job) => {
    const content = found.has(job) ? found.get(job) : job
    if (content && 'posting' in content && content.revision === job.revision) return { value: content.posting }
    if (content && 'error' in content) return content
    const { uuid, name } = job.posting
    return { error: new Unclaimable(`job ${uuid} (${name}) was changed while it was being claimed`) }
  })
}

/**
 * Finds out which attempts without an end were ended by an outage; sends no request where there are none. If the listing of
 * living owners fails, the job is not claimed now: it could be trashed for deaths that were outages.
 */
async function resolveOutages(
  candidates: readonly Candidate[],
  { incarnation, settings }: CandidateContext,
): Promise<{ readonly candidates: readonly Candidate[] } & Pick<Candidates, 'refused'>> {
  const unended = ({ posting }: Candidate) => unendedIncarnations(settings.applyTo(posting))
  const owners = new Set(candidates.flatMap(unended))
  if (owners.size === 0) return { candidates, refused: [] }
  try {
    const living = await incarnation.listLiving(owners)
    const judged = candidates.map(({ place, posting }) => {
      const { attempts } = markOutages(settings.applyTo(posting), living)
      return { place, posting: attempts === posting.attempts ? posting : { ...posting, attempts } }
    })
    return { candidates: judged, refused: [] }
  } catch (error) {
    const doubtful = (candidate: Candidate) => unended(candidate).length > 0
    const refused = candidates.filter(doubtful).map(({ place }) => ({ place, ...toFailed(error) }))
    return { candidates: candidates.filter((candidate) => !doubtful(candidate)), refused }
  }
}

/**
 * Finds the jobs that nobody has started in time. Sends no request where none can expire, once the server's clock is known. If that clock cannot
 * be read, such jobs are not claimed now: the clock of this machine may be wrong.
 */
async function findExpired(
  candidates: readonly Candidate[],
  { incarnation, backend, settings }: CandidateContext,
): Promise<{ readonly expired: ReadonlySet<QueuePlace>; readonly undecided: Candidates['refused'] }> {
  const applied = (stored: StoredJob): StoredJob => ({ ...stored, posting: settings.applyTo(stored.posting) })
  const places = candidates.flatMap(({ place }) => (canExpire(settings.applyTo(place.stored.posting)) ? [place] : []))
  if (places.length === 0) return { expired: new Set(), undecided: [] }
  try {
    await backend.clock.read()
    const overdue = places.filter(({ stored }) => isOverdue(applied(stored), backend.clock.now()))
    const living = await incarnation.listLiving(listReservedFor(overdue.map(({ stored }) => stored)))
    return {
      expired: new Set(overdue.filter(({ stored }) => !living.has(stored.posting.reservedFor ?? ''))),
      undecided: [],
    }
  } catch (error) {
    return { expired: new Set(), undecided: places.map((place) => ({ place, ...toFailed(error) })) }
  }
}
