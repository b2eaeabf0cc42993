/**
 * Copies a paused board to another one, of any backend: records, batches, trash, history, and the unclaimed jobs. The source is only read. The target
 * stays paused, so that no job of it is claimed before all of them are there. An interrupted copy can be run again: it copies only what is missing.
 */
import { InvalidState } from '../../core/errors.ts'
import { monotonic, sleep } from '../../core/time.ts'
import { boardInternals } from '../api/board-internals.ts'
import { MAX_HISTORY } from '../api/history.ts'
import { countTrash } from '../api/job-pages.ts'
import { type BoardPause, readPause } from '../records/pause-record.ts'
import { closeBatches, openBatches } from './batches.ts'
import { copyHistory, copyTrash } from './ended.ts'
import { copyJobs, removeDeparted } from './jobs.ts'
import { COPIED_RECORDS, copyRecords, copyTokens } from './records.ts'
import {
  assertCopyable,
  type BoardSide,
  COPY_KINDS,
  type CopyCount,
  type CopyKind,
  type CopySides,
  type CopyWork,
  listClaimed,
  listIds,
  type SkippedItem,
} from './sides.ts'
import { assertTarget, prepareTarget } from './target.ts'

export interface CopyOptions {
  readonly signal: AbortSignal
  /** The time to wait until claimed jobs have ended, in milliseconds; by default claimed jobs are an error. */
  readonly waitMs?: number
  /** Called with each item that was not copied. */
  readonly onSkipped: (item: SkippedItem) => void
  /** Called after each item, with the numbers so far. */
  readonly onProgress?: (kind: CopyKind, count: Readonly<CopyCount>) => void
}

/** The result for one kind, and the numbers of it on both boards. */
export interface CopyReport extends CopyCount {
  readonly kind: CopyKind
  readonly source: number
  readonly target: number
}

/** The pause between two looks for claimed jobs. */
const LOOK_AGAIN_MS = 500
/** The number of claimed jobs that an error names. */
const NAMED_JOBS = 3

/**
 * Copies the board, and compares the numbers afterwards. Returns one report for each kind.
 *
 * @throws InvalidState if the source is not paused, has claimed jobs or was resumed, or the target has other content or was resumed
 * @throws InvalidArgument if both are one board; Conflict; UnsupportedCapability
 * @throws NotConnected, OutcomeUnknown, and the signal's reason: the same call copies the rest
 */
export async function copyBoard(sides: CopySides, options: CopyOptions): Promise<readonly CopyReport[]> {
  const { from, to } = sides
  const { signal, onSkipped, onProgress } = options
  for (const side of [from, to]) assertCopyable(side)
  const pause = await assertQuiet(from, options)
  const target = await prepareTarget({ ...sides, pause }, signal)
  const counts = newCounts()
  const count = (kind: CopyKind, what: keyof CopyCount) => {
    counts[kind][what] += 1
    onProgress?.(kind, counts[kind])
  }
  const skip = (item: SkippedItem) => {
    count(item.kind, 'skipped')
    onSkipped(item)
  }
  const work: CopyWork = { ...sides, signal, count, skip }
  await copyRecords(work)
  await copyTokens(work)
  const jobs = { ...work, target, batches: await openBatches(work) }
  // First: they may have the keys of jobs that were posted since.
  await removeDeparted(jobs)
  await reportingFaults('trash', work, () => copyTrash(jobs))
  await reportingFaults('history', work, () => copyHistory(work))
  await assertStillQuiet(from, pause)
  await copyJobs(jobs)
  await closeBatches(work)
  await assertStillQuiet(from, pause)
  await assertTarget({ to, pause })
  const [source, copy] = [await countBoard(from), await countBoard(to)]
  return COPY_KINDS.map((kind) => ({ kind, ...counts[kind], source: source[kind], target: copy[kind] }))
}

/** Returns the number of items of each kind on the source, after the checks of a copy. Changes nothing. @param to absent where the target does not exist yet @throws as {@link copyBoard} */
export async function planCopy(
  { from, to }: { readonly from: BoardSide; readonly to?: BoardSide | undefined },
  options: Pick<CopyOptions, 'signal' | 'waitMs'>,
): Promise<Readonly<Record<CopyKind, number>>> {
  assertCopyable(from)
  const pause = await assertQuiet(from, options)
  if (to) {
    assertCopyable(to)
    await assertTarget({ to, pause })
  }
  return countBoard(from)
}

/** Counts each error that the source reports during the work as a skipped item: that is how it reports what it cannot read. */
async function reportingFaults(kind: CopyKind, { from, skip }: CopyWork, work: () => Promise<void>): Promise<void> {
  const off = from.board.on('error', ({ error }) => skip({ kind, name: error.message, error }))
  try {
    await work()
  } finally {
    off()
  }
}

/** Resolves with the pause of the source when none of its jobs is claimed. @throws InvalidState */
async function assertQuiet(
  { board, backend }: BoardSide,
  { signal, waitMs = 0 }: Pick<CopyOptions, 'signal' | 'waitMs'>,
): Promise<BoardPause> {
  const until = monotonic() + waitMs
  while (true) {
    // `board.paused` may be the state at opening: only the record shows that the board is still paused.
    const pause = board.paused ? await readPause(boardInternals(board).records) : undefined
    if (!pause)
      throw new InvalidState(
        `board ${backend.uri} is not paused: its jobs would run on both boards; run jobboard pause --board '${backend.uri}' first`,
      )
    const claimed = await listClaimed(backend)
    if (claimed.length === 0) return pause
    const left = until - monotonic()
    if (left <= 0) throw await claimedError(backend, claimed)
    await sleep(Math.min(LOOK_AGAIN_MS, left), { signal })
  }
}

/** Checks that the source is still in the same pause, and has no claimed jobs. @throws InvalidState */
async function assertStillQuiet({ board, backend }: BoardSide, { since }: BoardPause): Promise<void> {
  const pause = await readPause(boardInternals(board).records)
  const claimed = await listClaimed(backend)
  if (pause?.since.getTime() === since.getTime() && claimed.length === 0) return
  throw new InvalidState(
    `board ${backend.uri} was resumed while it was copied: its jobs may run on both boards; pause it, and copy it to a board that is new`,
  )
}

async function claimedError(backend: BoardSide['backend'], claimed: readonly string[]): Promise<InvalidState> {
  const read = await backend.jobs.read(claimed.slice(0, NAMED_JOBS))
  const names = read.flatMap((job) => (job && 'posting' in job ? [`${job.posting.uuid} (${job.posting.name})`] : []))
  const rest = claimed.length > names.length ? ', …' : ''
  return new InvalidState(
    `board ${backend.uri}: ${claimed.length} of its jobs run: ${names.join(', ')}${rest}; wait until they have ended, or copy with --wait`,
  )
}

async function countBoard({ backend }: BoardSide): Promise<Record<CopyKind, number>> {
  const numbers = emptyNumbers()
  for (const { kind, name } of COPIED_RECORDS) numbers[name] = (await backend.records.list(kind)).length
  numbers.batches = (await backend.batches.list({ limit: Number.MAX_SAFE_INTEGER })).length
  numbers.trash = await countTrash(backend)
  numbers.history = (await backend.history.newest({ limit: MAX_HISTORY })).length
  numbers.jobs = (await listIds(backend)).length
  return numbers
}

function emptyNumbers(): Record<CopyKind, number> {
  return {
    ...{ schedules: 0, limits: 0, holds: 0, settings: 0, outlines: 0, marks: 0 },
    ...{ batches: 0, trash: 0, history: 0, jobs: 0 },
  }
}

function newCounts(): Record<CopyKind, CopyCount> {
  const none = (): CopyCount => ({ copied: 0, present: 0, skipped: 0 })
  return {
    ...{ schedules: none(), limits: none(), holds: none(), settings: none(), outlines: none(), marks: none() },
    ...{ batches: none(), trash: none(), history: none(), jobs: none() },
  }
}
