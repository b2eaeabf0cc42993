/** The two boards of a copy, and how its parts report what they did. */
import { UnsupportedCapability } from '../../core/errors.ts'
import type { JobBoard } from '../api/job-board.ts'
import type { Backend, JobSummary, StoredJob, UnreadableJob } from '../contract/index.ts'
import { compareIds } from '../model/claim-order.ts'

/** An open board with its backend, which the copy uses itself: no method of a board posts a job that has run before. */
export interface BoardSide {
  readonly board: JobBoard
  readonly backend: Backend
}

export interface CopySides {
  readonly from: BoardSide
  readonly to: BoardSide
}

/** The kinds of things that are copied, in the order of the copy. */
export const COPY_KINDS = [
  'schedules',
  'limits',
  'holds',
  'settings',
  'outlines',
  'marks',
  'batches',
  'trash',
  'history',
  'jobs',
] as const
export type CopyKind = (typeof COPY_KINDS)[number]

/** The result for the things of one kind. */
export interface CopyCount {
  copied: number
  /** The number that was there already, from an earlier copy that was interrupted. */
  present: number
  /** The number that could not be read, or that the target refused. */
  skipped: number
}

/** A thing that was not copied. */
export interface SkippedItem {
  readonly kind: CopyKind
  /** The uuid of the job, where it can be read, or its id on the source. */
  readonly name: string
  readonly error: Error
}

export interface CopyWork extends CopySides {
  readonly signal: AbortSignal
  readonly count: (kind: CopyKind, what: keyof CopyCount) => void
  readonly skip: (item: SkippedItem) => void
}

/** The number of jobs that are read and posted at once: with postings of the greatest size they take 50 MB. */
const PAGE = 100
/** The number of jobs without postings in one read. */
const RANGE = 2_000

/**
 * Returns the ids of the jobs on a board in the order of their posts: within a priority that is the claim order, and a job comes after those
 * on which it depends. Takes some 100 bytes of memory for each.
 */
export async function listIds(backend: Backend): Promise<readonly string[]> {
  const { sections } = backend
  if (!sections)
    return [...((await backend.jobs.list?.())?.jobs ?? [])].sort((a, b) => compareIds({ id: a }, { id: b }))
  const found: { readonly id: string; readonly order: bigint }[] = []
  for (let after: JobSummary | undefined, end = false; !end; ) {
    const section = await sections.range({ after, limit: RANGE, due: false })
    for (const { id, order } of section.jobs) found.push({ id, order })
    after = section.jobs.at(-1)
    end = section.end || after === undefined
  }
  found.sort((a, b) => (a.order === b.order ? compareIds(a, b) : a.order < b.order ? -1 : 1))
  return found.map(({ id }) => id)
}

/** Returns the ids of the jobs that are claimed. */
export async function listClaimed(backend: Backend): Promise<readonly string[]> {
  if (backend.sections) return (await backend.sections.claimed()).map(({ id }) => id)
  return [...((await backend.jobs.list?.())?.claimed ?? [])]
}

/** Yields the jobs with these ids, page by page. Omits jobs that have left the board. */
export async function* readPages(
  backend: Backend,
  ids: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<readonly (StoredJob | UnreadableJob)[], void, undefined> {
  for (let start = 0; start < ids.length; start += PAGE) {
    signal.throwIfAborted()
    const read = await backend.jobs.read(ids.slice(start, start + PAGE))
    yield read.flatMap((job) => job ?? [])
  }
}

/** @throws UnsupportedCapability for a board that TaskFlow's services share, whose jobs have no history, batches and dependencies */
export function assertCopyable({ backend }: BoardSide): void {
  const { uri, shared } = backend
  if (shared)
    throw new UnsupportedCapability(`board ${uri} cannot be copied: it has no history`, { capability: 'history' })
}
