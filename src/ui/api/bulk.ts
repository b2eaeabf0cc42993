/** Changes many jobs: those that are named, or all that match a search. The page shows the number before anything is changed. */
import type { z } from 'zod'
import type { Job, TrashedJob } from '../../board/index.ts'
import type { ListedJob } from '../../board/internal.ts'
import { InvalidArgument, JobboardError, NotFound } from '../../core/errors.ts'
import type { Redactor } from '../../core/redaction.ts'
import { monotonic } from '../../core/time.ts'
import { searchedJob, searchedTrash, stateOf } from '../boards/rows.ts'
import type { ViewedBoard } from '../boards/viewed-board.ts'
import { Refusal, toProblem } from '../problem.ts'
import { matches } from '../search/match.ts'
import type { Search, SearchState } from '../search/parse.ts'
import type { bulkBody, WireBulkResult } from '../wire/actions.ts'
import { carryOut } from './audit.ts'
import { searchOf } from './board-of.ts'
import type { Call } from './route.ts'

/** The most jobs of one request. */
const MAX_JOBS = 10_000
/** How many jobs are changed at the same time. */
const AT_ONCE = 16
const MAX_FAILURES = 1_000
/** The time within which the jobs must be found, and that within which they are changed. A request is answered within 45 s in any case. */
const FIND_MS = 10_000
const ACT_MS = 25_000

type Body = z.infer<typeof bulkBody>

interface Target {
  readonly uuid: string
  act(reason: string): Promise<unknown>
}

interface Targets {
  readonly targets: readonly Target[]
  readonly more: boolean
  /** The named jobs that were not found. */
  readonly missing: readonly string[]
}

/** Counts the jobs of a bulk action, and carries it out unless only the number is asked for. @throws Refusal, InvalidArgument, NotConnected */
export async function runBulk(call: Call<unknown, Body>, viewed: ViewedBoard): Promise<WireBulkResult> {
  const { action, uuids, query, reason, dryRun, expected } = call.body
  const what = uuids ? `${uuids.length} jobs` : `all jobs of the search '${query}'`
  const search = query === undefined ? undefined : searchOf(call, query)
  await viewed.touch()
  return carryOut(call, viewed, { action, what: dryRun ? `${what} (counted only)` : what, reason }, async (text) => {
    const { redaction } = call.services
    const { targets, more, missing } = await findTargets(viewed, { action, uuids, search, redaction })
    const matched = targets.length + missing.length
    if (dryRun) return { matched, more, done: 0, failed: [], left: matched }
    if (expected !== undefined && matched > expected)
      throw new Refusal('CHANGED', `the search finds ${matched} jobs now, and ${expected} were shown: look again`)
    const failed = missing
      .slice(0, MAX_FAILURES)
      .map((uuid) => ({ uuid, code: 'NOT_FOUND', message: notThere(action) }))
    const { done, tried } = await actOnAll(targets, { reason: text, failed, call })
    return { matched, more, done, failed, left: targets.length - tried }
  })
}

interface ActOptions {
  readonly reason: string
  /** Receives the jobs that could not be changed. */
  readonly failed: WireBulkResult['failed']
  readonly call: Pick<Call<unknown, Body>, 'services'>
}

/** Changes the jobs, some at a time, until the time of one request is over or the dashboard is closed. */
async function actOnAll(
  targets: readonly Target[],
  { reason, failed, call }: ActOptions,
): Promise<{ readonly done: number; readonly tried: number }> {
  const { signal, redaction } = call.services
  const until = monotonic() + ACT_MS
  let done = 0
  let tried = 0
  const waiting = targets.values()
  const worker = async () => {
    for (const { uuid, act } of waiting) {
      if (signal.aborted || monotonic() > until) return
      tried += 1
      try {
        await act(reason)
        done += 1
      } catch (error) {
        if (!(error instanceof JobboardError)) throw error
        const { code, message } = toProblem(error).problem
        if (failed.length < MAX_FAILURES) failed.push({ uuid, code, message: redaction.text(message) })
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return { done, tried }
}

interface Wanted {
  readonly action: Body['action']
  readonly uuids: readonly string[] | undefined
  readonly search: Search | undefined
  readonly redaction: Redactor
}

async function findTargets(viewed: ViewedBoard, { action, uuids, ...searching }: Wanted): Promise<Targets> {
  const wanted = uuids && new Set(uuids)
  if (action === 'cancel') {
    const found = wanted ? await findNamed(viewed, wanted) : await searchJobs(viewed, searching)
    return toTargets(found, wanted, (job, reason) => viewed.board.cancel(job, { reason }))
  }
  const found = await searchTrash(viewed, (job) => (wanted ? wanted.has(job.uuid) : isInSearch(job, searching)))
  return toTargets(found, wanted, (job) => (action === 'restore' ? viewed.board.restore(job) : viewed.board.purge(job)))
}

function toTargets<T extends { readonly uuid: string }>(
  { jobs, more }: { readonly jobs: readonly T[]; readonly more: boolean },
  wanted: ReadonlySet<string> | undefined,
  act: (job: T, reason: string) => Promise<unknown>,
): Targets {
  const there = new Set(jobs.map(({ uuid }) => uuid))
  const targets = jobs.map((job) => ({ uuid: job.uuid, act: (reason: string) => act(job, reason) }))
  return { targets, more, missing: [...(wanted ?? [])].filter((uuid) => !there.has(uuid)) }
}

async function findNamed({ board }: ViewedBoard, uuids: ReadonlySet<string>): Promise<{ jobs: Job[]; more: boolean }> {
  const jobs: Job[] = []
  const waiting = uuids.values()
  const worker = async () => {
    for (const uuid of waiting) {
      const job = await board.find(uuid).catch((error: unknown) => {
        // InvalidArgument: a text that is not the uuid of any job.
        if (!(error instanceof NotFound || error instanceof InvalidArgument)) throw error
      })
      if (job) jobs.push(job)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return { jobs, more: false }
}

/** Reads the whole board, which may take several reads. */
async function searchJobs(
  { board }: ViewedBoard,
  { search, redaction }: Pick<Wanted, 'search' | 'redaction'>,
): Promise<{ jobs: Job[]; more: boolean }> {
  const now = await board.readClock()
  const accept = (listed: ListedJob) => {
    const state = stateOf(listed, now).toLowerCase() as SearchState
    return !search || ((!search.states || search.states.has(state)) && matches(search, searchedJob(listed, redaction)))
  }
  const owners = search?.readsOwners ?? false
  const page = await board.jobPage({ limit: MAX_JOBS, most: Number.MAX_SAFE_INTEGER, timeMs: FIND_MS, accept, owners })
  return { jobs: page.items.map(({ job }) => job), more: page.next !== undefined }
}

async function searchTrash(
  { board }: ViewedBoard,
  isWanted: (job: TrashedJob) => boolean,
): Promise<{ jobs: TrashedJob[]; more: boolean }> {
  const accept = (job: TrashedJob) => isWanted(job)
  const page = await board.trashPage({ limit: MAX_JOBS, most: Number.MAX_SAFE_INTEGER, timeMs: FIND_MS, accept })
  // A uuid can be in the trash several times: the newest counts.
  const newest = new Map(page.items.map((job) => [job.uuid, job]))
  return { jobs: [...newest.values()], more: page.next !== undefined }
}

function isInSearch(job: TrashedJob, { search, redaction }: Pick<Wanted, 'search' | 'redaction'>): boolean {
  if (!search) return true
  return (!search.states || search.states.has('trashed')) && matches(search, searchedTrash(job, redaction))
}

function notThere(action: Body['action']): string {
  return action === 'cancel' ? 'the job is not on the board' : 'the job is not in the trash'
}
