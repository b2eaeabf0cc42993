/**
 * Decides which of the chosen jobs may be claimed: not those over a limit, after attempts that an outage ended are marked; and not those that
 * nobody has started in time.
 */
import { catchError, toFailed } from '../../core/result.ts'
import type { Backend } from '../backend.ts'
import { exceededLimit, markOutages, unendedIncarnations } from '../model/attempts.ts'
import type { QueueEntry } from '../model/entry.ts'
import { canExpire, isOverdue, listReservedFor } from '../model/expiry.ts'
import type { Posting } from '../model/posting.ts'
import type { Incarnation } from './incarnation.ts'

/** A chosen job, with the posting by which limits are checked: attempts that an outage ended are marked as ended. */
export interface Candidate {
  readonly place: QueueEntry
  readonly posting: Posting
}

export interface Candidates {
  readonly within: readonly Candidate[]
  /** The jobs over a limit, and those that have expired, which are trashed instead. */
  readonly over: readonly Candidate[]
  readonly refused: readonly { readonly place: QueueEntry; readonly error: Error }[]
}

export interface CandidateContext {
  readonly incarnation: Incarnation
  readonly backend: Pick<Backend, 'now' | 'readClock' | 'capabilities'>
}

/** Sorts the chosen jobs. An error of one job affects no other. */
export async function sortCandidates(places: readonly QueueEntry[], context: CandidateContext): Promise<Candidates> {
  const { candidates, refused: doubtful } = await resolveOutages(places, context.incarnation)
  const { expired, undecided } = await findExpired(candidates, context)
  const refused = [...doubtful, ...undecided]
  const hidden = new Set(undecided.map(({ place }) => place))
  const within: Candidate[] = []
  const over: Candidate[] = []
  for (const candidate of candidates) {
    if (hidden.has(candidate.place)) continue
    const limit = catchError(() => exceededLimit(candidate.posting))
    if ('value' in limit && limit.value === undefined && !expired.has(candidate.place)) within.push(candidate)
    else over.push(candidate)
  }
  return { within, over, refused }
}

/**
 * Finds out which attempts without an end were ended by an outage; sends no request where there are none. If the listing of
 * living owners fails, the job is not claimed now: it could be trashed for deaths that were outages.
 */
async function resolveOutages(
  places: readonly QueueEntry[],
  incarnation: Incarnation,
): Promise<{ readonly candidates: readonly Candidate[] } & Pick<Candidates, 'refused'>> {
  const candidates = places.map((place) => ({ place, posting: place.stored.posting }))
  const owners = new Set(candidates.flatMap(({ posting }) => unendedIncarnations(posting)))
  if (owners.size === 0) return { candidates, refused: [] }
  try {
    const living = await incarnation.listLiving(owners)
    const judged = candidates.map(({ place, posting }) => ({ place, posting: markOutages(posting, living) }))
    return { candidates: judged, refused: [] }
  } catch (error) {
    const doubtful = ({ posting }: Candidate) => unendedIncarnations(posting).length > 0
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
  { incarnation, backend }: CandidateContext,
): Promise<{ readonly expired: ReadonlySet<QueueEntry>; readonly undecided: Candidates['refused'] }> {
  const places = backend.capabilities.expiry
    ? candidates.flatMap(({ place }) => (canExpire(place.stored.posting) ? [place] : []))
    : []
  if (places.length === 0) return { expired: new Set(), undecided: [] }
  try {
    await backend.readClock?.()
    const overdue = places.filter(({ stored }) => isOverdue(stored, backend.now()))
    const living = await incarnation.listLiving(listReservedFor(overdue.map(({ stored }) => stored)))
    return {
      expired: new Set(overdue.filter(({ stored }) => !living.has(stored.posting.reservedFor ?? ''))),
      undecided: [],
    }
  } catch (error) {
    return { expired: new Set(), undecided: places.map((place) => ({ place, ...toFailed(error) })) }
  }
}
