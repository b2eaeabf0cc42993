/** Decides which of the chosen jobs may be claimed: not those over a limit, after attempts that an outage ended are marked. */
import { catchError, toFailed } from '../../core/result.ts'
import { exceededLimit, markOutages, unendedIncarnations } from '../model/attempts.ts'
import type { QueueEntry } from '../model/entry.ts'
import type { Posting } from '../model/posting.ts'
import type { Incarnation } from './incarnation.ts'

/** A chosen job, with the posting by which limits are checked: attempts that an outage ended are marked as ended. */
export interface Candidate {
  readonly place: QueueEntry
  readonly posting: Posting
}

export interface Candidates {
  readonly within: readonly Candidate[]
  /** The jobs over a limit, which are trashed instead. */
  readonly over: readonly Candidate[]
  readonly refused: readonly { readonly place: QueueEntry; readonly error: Error }[]
}

/** Sorts the chosen jobs. An error of one job affects no other. */
export async function sortCandidates(places: readonly QueueEntry[], incarnation: Incarnation): Promise<Candidates> {
  const { candidates, refused } = await resolveOutages(places, incarnation)
  const within: Candidate[] = []
  const over: Candidate[] = []
  for (const candidate of candidates) {
    const limit = catchError(() => exceededLimit(candidate.posting))
    if ('value' in limit && limit.value === undefined) within.push(candidate)
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
