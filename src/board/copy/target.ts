/**
 * The rest of an earlier copy on the target. A record names the source and the pause in which the copy was made: as long as the board has not been
 * resumed since, no job of it has run, and whatever is missing can be copied again.
 */
import { InvalidArgument, InvalidState } from '../../core/errors.ts'
import { boardInternals } from '../api/board-internals.ts'
import type { HistoryEntry } from '../model/ended-job.ts'
import type { Posting } from '../model/posting/posting.ts'
import { fieldsOf, parseStored, text, time } from '../model/stored.ts'
import { type BoardPause, readPause } from '../records/pause-record.ts'
import type { RecordKind } from '../records/record-store.ts'
import { COPIED_RECORDS } from './records.ts'
import { type BoardSide, type CopySides, listIds, readPages } from './sides.ts'

interface CopyRecord {
  /** The URI of the source, without a password, for people. */
  readonly source: string
  /** The beginning of the pause of the source, which distinguishes it from other boards. */
  readonly sourcePausedAt: number
  /** The beginning of the pause of the target. */
  readonly pausedAt: number
}

const COPY = fieldsOf<CopyRecord>({ source: text, sourcePausedAt: time, pausedAt: time })
const COPIES: RecordKind<CopyRecord> = {
  ...{ name: 'copy', format: 1 },
  parse: (value, id) => parseStored(value, COPY, `copy ${id}`),
}
const ID = 'board'

/**
 * The delay of a job that is on the target for a moment only, on its way to the trash or into the history: it is never claimed, also if the copy is
 * interrupted and the board resumed.
 */
export const TEMPORARY_DELAY_MS = 3_650 * 86_400_000 + 7

/** Returns whether the job is temporary: it has the reserved delay or flow. */
export function isTemporary({ delay = 0, details }: Posting): boolean {
  return delay === TEMPORARY_DELAY_MS || details.flow === TEMPORARY_FLOW
}

/** The flow of temporary jobs that write an entry of the history, or count a failed job of a batch. No conductor runs it. */
export const TEMPORARY_FLOW = 'jobboard/copied'

/** The content of the target. */
export interface TargetContent {
  /** The ids of the jobs that an earlier copy has posted, in the order of their posts, by their uuids: two jobs may have one uuid. */
  readonly jobs: Map<string, string[]>
  /** The jobs that were on their way to the trash when the copy was interrupted, by their uuids. */
  readonly temporary: Map<string, UnclaimedJob>
}

/** An unclaimed job as it was read. */
export interface UnclaimedJob {
  readonly id: string
  readonly revision: number
  readonly posting: Posting
}

/**
 * Pauses the target and notes the source there; removes what a copy that was interrupted has left half done. Returns the jobs that are there.
 *
 * @throws InvalidState if the board has anything that was not copied from this source, or was resumed since; InvalidArgument if it is the source
 */
export async function prepareTarget(
  { from, to, pause: sourcePause }: CopySides & { readonly pause: BoardPause },
  signal: AbortSignal,
): Promise<TargetContent> {
  const source = from.backend.uri
  const sourcePausedAt = sourcePause.since.getTime()
  const store = boardInternals(to.board).records.of(COPIES)
  if (await assertTarget({ to, pause: sourcePause })) return readContent(to, signal)
  await to.board.pause({ reason: `jobs are copied from ${from.backend.uri}: resume it when the copy is complete` })
  const pause = await to.board.pauseOrigin()
  if (!pause) throw new InvalidState(`board ${to.backend.uri}: its pause could not be recorded; try again`)
  await store.write([
    { id: ID, revision: undefined, value: { source, sourcePausedAt, pausedAt: pause.since.getTime() } },
  ])
  return { jobs: new Map(), temporary: new Map() }
}

/**
 * Checks that the board can be the target. Returns whether it has a part of the copy already.
 *
 * @param options.pause the pause of the source
 * @throws InvalidState, InvalidArgument as {@link prepareTarget}
 */
export async function assertTarget({
  to,
  pause,
}: Pick<CopySides, 'to'> & { readonly pause: BoardPause }): Promise<boolean> {
  // Two URIs can name one board: it is recognized by its pause.
  const own = await readPause(boardInternals(to.board).records)
  const noted = await boardInternals(to.board).records.of(COPIES).get(ID)
  if (own?.since.getTime() === pause.since.getTime() && own.by === pause.by && !isCopyOf(noted, pause))
    throw new InvalidArgument(`${to.backend.uri} is the board that is copied; name another one as the target`)
  if (noted) assertContinues(noted, { to, pause, own })
  else await assertEmpty(to)
  return noted !== undefined
}

/** Refuses a target with anything on it. @throws InvalidState */
async function assertEmpty({ backend }: BoardSide): Promise<void> {
  const has = await describeContent(backend)
  if (has === undefined) return
  throw new InvalidState(
    `board ${backend.uri} is not empty: it has ${has}; copy to a board that is new, such as another name, path or schema`,
  )
}

async function describeContent(backend: BoardSide['backend']): Promise<string | undefined> {
  if ((await listIds(backend)).length > 0) return 'jobs'
  for await (const _ of backend.trash.list()) return 'jobs in the trash'
  if ((await backend.history.newest({ limit: 1 })).length > 0) return 'a history'
  if ((await backend.batches.list({ limit: 1 })).length > 0) return 'batches'
  // Conductors that wait for the copy have written the outlines of their flows.
  for (const { kind, name } of COPIED_RECORDS)
    if (kind !== 'outline' && (await backend.records.list(kind)).length > 0) return name
  return undefined
}

/** Returns whether the record says that the board is a copy of the board with this pause. Both may have been paused in the same millisecond. */
function isCopyOf(noted: object | undefined, pause: BoardPause): boolean {
  const { value }: { readonly value?: CopyRecord } = noted ?? {}
  return value?.sourcePausedAt === pause.since.getTime() && value.pausedAt === pause.since.getTime()
}

function assertContinues(
  noted: object,
  {
    to: { backend },
    pause,
    own,
  }: Pick<CopySides, 'to'> & { readonly pause: BoardPause; readonly own: BoardPause | undefined },
): void {
  const { value }: { readonly value?: CopyRecord } = noted
  if (value?.sourcePausedAt !== pause.since.getTime()) {
    const why = `it has a copy of ${value?.source ?? 'another board'}, which is another board, or was resumed after that copy`
    throw new InvalidState(`board ${backend.uri} is not empty: ${why}; copy to a board that is new`)
  }
  if (own?.since.getTime() === value.pausedAt) return
  throw new InvalidState(
    `board ${backend.uri} was resumed since it was copied from ${value.source}: jobs may have run there; copy to a board that is new`,
  )
}

/** Returns the jobs on the target. Removes temporary jobs that were posted for its history: they have no further use. */
async function readContent({ backend }: BoardSide, signal: AbortSignal): Promise<TargetContent> {
  const content: TargetContent = { jobs: new Map(), temporary: new Map() }
  for await (const page of readPages(backend, await listIds(backend), signal)) {
    for (const job of page) {
      if ('error' in job) continue
      const { id, revision, posting } = job
      if (posting.details.flow === TEMPORARY_FLOW) await removeJob({ id, revision, posting }, { backend })
      else if (isTemporary(posting)) content.temporary.set(posting.uuid, { id, revision, posting })
      else content.jobs.set(posting.uuid, [...(content.jobs.get(posting.uuid) ?? []), id])
    }
  }
  for await (const entry of backend.trash.list())
    if (entry.posting.details.flow === TEMPORARY_FLOW) await backend.trash.purge(entry)
  return content
}

/** Moves an unclaimed job to the trash, with an entry in the history if one is given, and deletes it there. */
export async function removeJob(
  job: UnclaimedJob,
  { backend, history }: Pick<BoardSide, 'backend'> & { readonly history?: HistoryEntry },
): Promise<void> {
  const { id, posting } = job
  const reason = 'it was on the board for a moment, to be copied'
  await backend.trash.discard({
    ...job,
    who: 'jobboard',
    reason,
    cancelRequested: false,
    ...(history ? { history } : {}),
  })
  const entry = (await backend.trash.entry(id)) ?? (await backend.trash.find(posting.uuid))
  if (entry) await backend.trash.purge(entry)
}
