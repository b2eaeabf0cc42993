/** Changes many jobs: the named jobs, or all that match a search. The page shows the number before anything is changed. */
import type { z } from 'zod'
import type { Job, TrashedJob } from '../../board/index.ts'
import type { ListedJob } from '../../board/internal.ts'
import { boardInternals } from '../../board/internal.ts'
import { InvalidArgument, JobboardError, NotFound } from '../../core/errors.ts'
import type { Redactor } from '../../core/redaction.ts'
import { monotonic } from '../../core/time.ts'
import { stateOf } from '../../views/internal.ts'
import { searchedJob, searchedTrash } from '../boards/rows.ts'
import type { ViewedBoard } from '../boards/viewed-board.ts'
import { Refusal, toProblem } from '../problem.ts'
import { matches } from '../search/match.ts'
import type { Search, SearchState } from '../search/parse.ts'
import type { bulkBody, WireBulkResult } from '../wire/actions.ts'
import { assertMay, carryOut } from './audit.ts'
import { searchOf } from './board-of.ts'
import type { Call } from './route.ts'

/** The most jobs of one request. */
const MAX_JOBS = 10_000
/** How many jobs are changed at the same time. */
const AT_ONCE = 16
/** The most failures that an answer has. */
const MAX_SHOWN_FAILURES = 1_000
/** The times for finding the jobs, and for changing them: together less than the 45 s after which the request would fail. */
const FIND_MS = 10_000
const ACT_MS = 25_000

type Body = z.infer<typeof bulkBody>

interface Target {
  readonly uuid: string
  act(reason: string): Promise<unknown>
}

interface Found<T> {
  readonly jobs: readonly T[]
  /** Whether there may be more: the time or the most jobs of one request were reached. */
  readonly hasMore: boolean
}

interface Targets {
  readonly targets: readonly Target[]
  readonly hasMore: boolean
  /** The named jobs that are not there. */
  readonly missing: readonly string[]
  /** The number of named jobs that were not looked for in time. */
  readonly unread: number
}

/**
 * Finds the jobs of a bulk action, and changes them unless `dryRun` is set.
 *
 * @throws Refusal without the right, and if the search matches more jobs than were shown; InvalidArgument, NotConnected
 */
export async function runBulk(call: Call<unknown, Body>, viewed: ViewedBoard): Promise<WireBulkResult> {
  const { action, uuids, query, reason, dryRun, expected, limit = MAX_JOBS } = call.body
  const wanted: Wanted = {
    ...{ action, uuids, redaction: call.services.redaction },
    search: query === undefined ? undefined : searchOf(call, query),
  }
  await viewed.touch()
  if (dryRun) {
    assertMay(call, action)
    const { targets, hasMore, missing, unread } = await findTargets(viewed, wanted)
    const matched = targets.length + missing.length + unread
    return { matched, more: hasMore, done: 0, failed: [], failures: 0, left: matched }
  }
  const what = uuids ? `${uuids.length} jobs` : `all jobs of the search '${query}'`
  return carryOut(call, viewed, { action, what, reason }, async (text) => {
    const { targets, hasMore, missing, unread } = await findTargets(viewed, wanted)
    const matched = targets.length + missing.length + unread
    if (expected !== undefined && matched > expected)
      throw new Refusal(
        'CHANGED',
        `the search now finds ${matched} jobs, but ${expected} were confirmed: count them again`,
      )
    const failed = missing.map((uuid) => ({ uuid, code: 'NOT_FOUND', message: notThere(action) }))
    const chosen = targets.slice(0, limit)
    const { done, tried } = await actOnAll(chosen, { reason: text, failed, call })
    return {
      ...{ matched, more: hasMore || chosen.length < targets.length, done, failures: failed.length },
      ...{ failed: failed.slice(0, MAX_SHOWN_FAILURES), left: chosen.length - tried + unread },
    }
  })
}

interface ActOptions {
  readonly reason: string
  /** Receives the jobs that could not be changed. */
  readonly failed: WireBulkResult['failed']
  readonly call: Pick<Call<unknown, Body>, 'services'>
}

/**
 * Changes up to 16 jobs at the same time, for at most 25 s, or until the dashboard is closed.
 *
 * @throws the first error that is a defect, when no change is under way any more
 */
async function actOnAll(
  targets: readonly Target[],
  { reason, failed, call }: ActOptions,
): Promise<{ readonly done: number; readonly tried: number }> {
  const { signal, redaction } = call.services
  const until = monotonic() + ACT_MS
  let done = 0
  let tried = 0
  const defects: unknown[] = []
  const waiting = targets.values()
  const worker = async () => {
    for (const { uuid, act } of waiting) {
      if (signal.aborted || defects.length > 0 || monotonic() > until) return
      tried += 1
      try {
        await act(reason)
        done += 1
      } catch (error) {
        if (!(error instanceof JobboardError)) defects.push(error)
        const { code, message } = toProblem(error).problem
        failed.push({ uuid, code, message: redaction.text(message) })
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  if (defects.length > 0) throw defects[0]
  return { done, tried }
}

interface Wanted {
  readonly action: Body['action']
  readonly uuids: readonly string[] | undefined
  readonly search: Search | undefined
  readonly redaction: Redactor
}

async function findTargets(viewed: ViewedBoard, { action, uuids, ...searching }: Wanted): Promise<Targets> {
  const named = uuids && new Set(uuids)
  if (action === 'cancel') {
    const found = named ? await findNamed(viewed, named) : await searchJobs(viewed, searching)
    return toTargets(found, named, (job, reason) => viewed.board.cancel(job, { reason }))
  }
  const found = await searchTrash(
    viewed,
    (job) => (named ? named.has(job.uuid) : isInSearch(job, searching)),
    named?.size,
  )
  return toTargets(found, named, (job) => (action === 'restore' ? viewed.board.restore(job) : viewed.board.purge(job)))
}

function toTargets<T extends { readonly uuid: string }>(
  { jobs, hasMore }: Found<T>,
  named: ReadonlySet<string> | undefined,
  act: (job: T, reason: string) => Promise<unknown>,
): Targets {
  const foundUuids = new Set(jobs.map(({ uuid }) => uuid))
  const targets = jobs.map((job) => ({ uuid: job.uuid, act: (reason: string) => act(job, reason) }))
  const rest = [...(named ?? [])].filter((uuid) => !foundUuids.has(uuid))
  return hasMore && named
    ? { targets, hasMore, missing: [], unread: rest.length }
    : { targets, hasMore, missing: rest, unread: 0 }
}

async function findNamed({ board }: ViewedBoard, uuids: ReadonlySet<string>): Promise<Found<Job>> {
  const jobs: Job[] = []
  const until = monotonic() + FIND_MS
  let hasMore = false
  const waiting = uuids.values()
  const worker = async () => {
    for (const uuid of waiting) {
      if (monotonic() > until) {
        hasMore = true
        return
      }
      const job = await board.find(uuid).catch((error: unknown) => {
        // InvalidArgument: a text that is not the uuid of any job.
        if (!(error instanceof NotFound || error instanceof InvalidArgument)) throw error
      })
      if (job) jobs.push(job)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return { jobs, hasMore }
}

/** Searches the open jobs of the board for at most 10 s. */
async function searchJobs(
  { board }: ViewedBoard,
  { search, redaction }: Pick<Wanted, 'search' | 'redaction'>,
): Promise<Found<Job>> {
  const now = await boardInternals(board).readClock()
  const accept = (listed: ListedJob) => {
    const state = stateOf(listed, now).toLowerCase() as SearchState
    return !search || ((!search.states || search.states.has(state)) && matches(search, searchedJob(listed, redaction)))
  }
  const owners = search?.readsOwners ?? false
  const page = await boardInternals(board).jobPage({
    limit: MAX_JOBS,
    most: Number.MAX_SAFE_INTEGER,
    timeMs: FIND_MS,
    accept,
    owners,
  })
  return { jobs: page.items.map(({ job }) => job), hasMore: page.next !== undefined }
}

/** Searches the trash for at most 10 s. A uuid can be in the trash several times: the newest entry counts. */
async function searchTrash(
  { board }: ViewedBoard,
  isWanted: (job: TrashedJob) => boolean,
  limit = MAX_JOBS,
): Promise<Found<TrashedJob>> {
  const seen = new Set<string>()
  const accept = (job: TrashedJob) => {
    if (seen.has(job.uuid) || !isWanted(job)) return false
    seen.add(job.uuid)
    return true
  }
  const asked = { limit, most: Number.MAX_SAFE_INTEGER, timeMs: FIND_MS, newestFirst: true, accept }
  const { items, next } = await boardInternals(board).trashPage(asked)
  return { jobs: items, hasMore: next !== undefined && items.length < limit }
}

function isInSearch(job: TrashedJob, { search, redaction }: Pick<Wanted, 'search' | 'redaction'>): boolean {
  if (!search) return true
  return (!search.states || search.states.has('trashed')) && matches(search, searchedTrash(job, redaction))
}

function notThere(action: Body['action']): string {
  return action === 'cancel' ? 'the job is not on the board' : 'the job is not in the trash'
}
