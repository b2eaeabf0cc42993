/**
 * Copies the trash and the history. No backend can write an entry of either directly: so a temporary job is posted with a delay of years, so that no
 * conductor claims it, and is moved to the trash at once, with the reasons and times of the entry. A job of the history is then deleted from the trash.
 */
import { asError } from '../../core/errors.ts'
import { MAX_HISTORY } from '../api/history.ts'
import type { TrashedEntry } from '../contract/index.ts'
import type { EndedJob, HistoryEntry } from '../model/ended-job.ts'
import { POSTING_FORMAT, type Posting } from '../model/posting/posting.ts'
import { isRefusal, type JobsToCopy, post } from './jobs.ts'
import type { CopyWork } from './sides.ts'
import { removeJob, TEMPORARY_DELAY_MS, TEMPORARY_FLOW } from './target.ts'

/** Copies the trash, oldest first. Entries that cannot be read are reported by the board. @throws NotConnected, OutcomeUnknown */
export async function copyTrash(work: JobsToCopy): Promise<void> {
  const { from, to, target, signal, count, skip } = work
  const copied = new Set<string>()
  for await (const entry of to.backend.trash.list()) copied.add(toKey(entry))
  for await (const entry of from.backend.trash.list()) {
    signal.throwIfAborted()
    if (copied.has(toKey(entry))) {
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
  for (const job of target.temporary.values()) await removeJob(job, to)
  target.temporary.clear()
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
  const temporary = target.temporary.get(posting.uuid)
  const id = temporary?.id ?? (await post({ ...posting, delay: TEMPORARY_DELAY_MS }, [], work))
  await to.backend.trash.discard({
    ...{ id, revision: temporary?.revision ?? 0, posting, who, reason, at, cancelRequested: false },
    ...(failure ? { failure } : {}),
  })
  target.temporary.delete(posting.uuid)
}

/** Copies the history: its newest 10,000 jobs, oldest first. @throws NotConnected, OutcomeUnknown */
export async function copyHistory(work: CopyWork): Promise<void> {
  const { from, to, signal, count } = work
  const read = async ({ backend }: CopyWork['from']) => backend.history.newest({ limit: MAX_HISTORY })
  const copied = new Set((await read(to)).map(({ uuid, endedAt }) => `${uuid} ${endedAt}`))
  const jobs = [...(await read(from))].reverse()
  for (const job of jobs) {
    signal.throwIfAborted()
    if (copied.has(`${job.uuid} ${job.endedAt}`)) {
      count('history', 'present')
      continue
    }
    await postAndRemove(toTemporary(job), { to, history: { job, keep: MAX_HISTORY } })
    count('history', 'copied')
  }
}

/** Posts a job and removes it at once. */
export async function postAndRemove(
  posting: Posting,
  { to, history }: Pick<CopyWork, 'to'> & { readonly history?: HistoryEntry },
): Promise<void> {
  const id = await post(posting, [], { to })
  await removeJob({ id, revision: 0, posting }, { ...to, ...(history ? { history } : {}) })
}

/** Returns the posting of a temporary job, in place of a job that has ended. */
export function toTemporary({
  uuid,
  name,
  batch,
}: Pick<EndedJob, 'uuid' | 'name'> & { readonly batch?: string }): Posting {
  return {
    ...{ uuid, name, details: { flow: TEMPORARY_FLOW }, priority: 'NORMAL', maxAttempts: 1 },
    ...{ format: POSTING_FORMAT, runs: 0, attempts: [], delay: TEMPORARY_DELAY_MS },
    ...(batch === undefined ? {} : { batch }),
  }
}
