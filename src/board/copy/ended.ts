/**
 * Copies the trash and the history. No backend can write an entry of either directly: so a temporary job is posted with a delay of years, which nobody
 * claims, and is moved to the trash at once, with the reasons and times of the entry. A job of the history is then deleted from the trash.
 */
import { asError } from '../../core/errors.ts'
import { MAX_HISTORY } from '../api/history.ts'
import type { TrashedEntry } from '../backend.ts'
import type { EndedJob, HistoryEntry } from '../model/ended-job.ts'
import { POSTING_FORMAT, type Posting } from '../model/posting.ts'
import { isRefusal, type JobsToCopy, post } from './jobs.ts'
import { type CopyWork, requirePart } from './sides.ts'
import { PASSING_DELAY_MS, PASSING_FLOW, removeJob } from './target.ts'

/** Copies the trash, oldest first. Entries that cannot be read are reported by the board. @throws NotConnected, OutcomeUnknown */
export async function copyTrash(work: JobsToCopy): Promise<void> {
  const { from, to, target, signal, count, skip } = work
  const there = new Set<string>()
  for await (const entry of to.backend.trashed()) there.add(toKey(entry))
  for await (const entry of from.backend.trashed()) {
    signal.throwIfAborted()
    if (there.has(toKey(entry))) {
      count('trash', 'present')
      continue
    }
    try {
      await copyEntry(entry, work)
      count('trash', 'copied')
    } catch (error) {
      if (!isRefusal(error)) throw error
      skip({ kind: 'trash', name: entry.posting.uuid, error: asError(error) })
    }
  }
  // Their entries have left the trash of the source meanwhile.
  for (const job of target.passing.values()) await removeJob(job, to)
  target.passing.clear()
}

/** Returns a key for an entry: one uuid can be in the trash several times, because a job was restored, or posted again with its uuid. */
function toKey({ posting, at }: Pick<TrashedEntry, 'posting' | 'at'>): string {
  return `${posting.uuid} ${at.getTime()}`
}

async function copyEntry(entry: TrashedEntry, work: JobsToCopy): Promise<void> {
  const { to, target, batches } = work
  const { who, reason, failure, at } = entry
  // `keyFor` is left out: counted from the new post, it would reserve the key for too long.
  const { keyFor: _, delay: __, batch, ...rest } = entry.posting
  const posting: Posting = { ...rest, ...(batch !== undefined && batches.has(batch) ? { batch } : {}) }
  const passing = target.passing.get(posting.uuid)
  const id = passing?.id ?? (await post({ ...posting, delay: PASSING_DELAY_MS }, [], work))
  await to.backend.discard({
    ...{ id, revision: passing?.revision ?? 0, posting, who, reason, at, cancelRequested: false },
    ...(failure ? { failure } : {}),
  })
  target.passing.delete(posting.uuid)
}

/** Copies the history: its newest 10,000 jobs, oldest first. @throws NotConnected, OutcomeUnknown */
export async function copyHistory(work: CopyWork): Promise<void> {
  const { from, to, signal, count } = work
  const read = async ({ backend }: CopyWork['from']) =>
    requirePart(backend.history, 'history').call(backend, { limit: MAX_HISTORY })
  const there = new Set((await read(to)).map(({ uuid, endedAt }) => `${uuid} ${endedAt}`))
  const jobs = [...(await read(from))].reverse()
  for (const job of jobs) {
    signal.throwIfAborted()
    if (there.has(`${job.uuid} ${job.endedAt}`)) {
      count('history', 'present')
      continue
    }
    await passThrough(toPassing(job), { to, history: { job, keep: MAX_HISTORY } })
    count('history', 'copied')
  }
}

/** Posts a job and removes it at once. */
export async function passThrough(
  posting: Posting,
  { to, history }: Pick<CopyWork, 'to'> & { readonly history?: HistoryEntry },
): Promise<void> {
  const id = await post(posting, [], { to })
  await removeJob({ id, revision: 0, posting }, { ...to, ...(history ? { history } : {}) })
}

/** Returns a job that is on the board for a moment, in place of one that has ended. */
export function toPassing({
  uuid,
  name,
  batch,
}: Pick<EndedJob, 'uuid' | 'name'> & { readonly batch?: string }): Posting {
  return {
    ...{ uuid, name, details: { flow: PASSING_FLOW }, priority: 'NORMAL', size: 'medium', maxAttempts: 1 },
    ...{ format: POSTING_FORMAT, runs: 0, attempts: [], delay: PASSING_DELAY_MS },
    ...(batch === undefined ? {} : { batch }),
  }
}
