/**
 * Taking the right to write a flow, and proving that nothing acknowledged is lost when it passes on.
 *
 * An heir
 *  1. links its mark into place, which one of several with the same term can do;
 *  2. reads the newest log below its term;
 *  3. links its own log, which begins with all it has read, and syncs the folder;
 *  4. looks for a newer term, then whether its own log is still there, as a writer does; gives up if there is a newer one;
 *  5. removes the files of older terms, oldest first, one after the other.
 *
 * A writer appends to its log, syncs it, then (A) lists the folder, looking for a newer term, and (B) looks whether its
 * own log is still there. Only then is the write acknowledged. (See `directory-flow-log.ts`.)
 *
 * **No acknowledged write is missed.** Suppose an heir's mark was in place when the writer's listing began. Either the
 * listing shows it, and the write is refused; or it was removed while the listing ran. Step 5 of the one who removed it
 * had then removed the writer's log before, as the older, and (B) refuses the write. So a write is acknowledged only if
 * the listing began before any heir's mark was there; the record was in the log by then, and every heir reads after it
 * has set its mark. What it reads is that log, or one made of it: logs are removed only by heirs that passed step 4, whose
 * own log was thus in place before any newer mark, and so before any newer heir began to read.
 *
 * **Nothing refused comes back.** What a former writer appends after the heir has read lies in a file that nobody takes
 * for the newest again. A refused write may have been seen by the heir only if the two raced: it is then part of what the
 * heir was handed.
 *
 * **A book that is made anew is left alone.** All steps are done in the folder that was opened at the beginning (`inFolder`):
 * where the book was destroyed meanwhile and another made in its place, the terms of its flows may be the same. The acquire
 * begins again then.
 *
 * **Power failures.** The log is synced before it has its name, and the name before the acquire is acknowledged, so a
 * predecessor's log is removed only when its heir's is safe. A mark need not be synced: it guards against writers that
 * live, and none outlives the machine; from then on the log under the term's name says as much.
 */
import { type FileHandle, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { ClaimLost, StorageFailure } from '../../core/errors.ts'
import { createFlowDetail, toAcquiredFlow } from '../apply.ts'
import type { FlowDetail } from '../models.ts'
import type { AcquireRequest, FlowRequest } from '../persistence.ts'
import { fencedError } from '../request-checks.ts'
import {
  exists,
  inFolder,
  missingAsUndefined,
  type OpenFolder,
  publish,
  readIfPresent,
  syncFolders,
  toErrno,
} from './files.ts'
import { readNewestFlow } from './read-flow.ts'
import { decodeMark, encodeFlow, encodeMark } from './records.ts'
import { compareTerms, formatTermFile, listTerms, newestTerm, type Term, type TermFile } from './terms.ts'

export interface AcquiredLog {
  readonly flow: FlowDetail
  readonly term: Term
  /** The term's log, which ends at `length`. */
  readonly file: FileHandle
  readonly length: number
}

/** Each attempt is lost only to somebody else's progress, so more than a few mean that something is badly wrong. */
const MAX_ACQUIRE_ATTEMPTS = 20

/**
 * @param folders the flow's folder first, then those above it whose entries must be durable before this is
 * @throws Fenced @throws ClaimLost when the same claim acquired the flow again meanwhile
 */
export async function acquireTerm(
  folders: readonly [string, ...string[]],
  request: AcquireRequest,
): Promise<AcquiredLog> {
  const [name, ...above] = folders
  return inFolder(name, (folder) => acquireIn(folder, { above, request }))
}

async function acquireIn(
  { path: folder, assertInPlace }: OpenFolder,
  { above, request }: { readonly above: readonly string[]; readonly request: AcquireRequest },
): Promise<AcquiredLog> {
  for (let attempt = 1; attempt <= MAX_ACQUIRE_ATTEMPTS; attempt++) {
    const term = await takeTerm(folder, request)
    const acquired = term && (await startLog(folder, { term, request }))
    if (!acquired) {
      await assertInPlace()
      continue
    }
    try {
      await syncFolders([folder, ...above])
      const files = await listTerms(folder)
      await assertNewest(folder, { files, term: acquired.term, request, assertInPlace })
      await removeOlder(folder, { files, term: acquired.term })
      await assertInPlace()
      return acquired
    } catch (error) {
      await acquired.file.close()
      throw error
    }
  }
  throw new StorageFailure(`flow ${request.flow.uuid} changes hands faster than it can be acquired; try again`, {
    retryable: true,
  })
}

/** Older than every run: a flow that was made before its first. */
const FIRST_TERM: Term = { run: 0, repeat: 0 }

/** Makes a flow unless anybody has made or acquired it; resolves to whether it was made. The folder is yet to be synced. */
export function startFlow(folder: string, request: FlowRequest): Promise<boolean> {
  return inFolder(folder, async ({ path, assertInPlace }) => {
    const made = await startFlowIn(path, request)
    await assertInPlace()
    return made
  })
}

async function startFlowIn(folder: string, request: FlowRequest): Promise<boolean> {
  if (newestTerm(await listTerms(folder))) return false
  const path = join(folder, formatTermFile(FIRST_TERM, 'log'))
  const file = await missingAsTakenOver(
    publish(path, encodeFlow(createFlowDetail(request, new Date())), { durable: true }),
  )
  await file?.close()
  // A run that came in between may not have seen it, and then the flow is that run's. Looks in the order of a writer's.
  const newest = newestTerm(await listTerms(folder))
  return file !== undefined && newest?.run === FIRST_TERM.run && (await exists(path))
}

/**
 * Replaces the log of a flow that is over by what it comes to, where that is much shorter: the same claim acquires it once
 * more, and so nothing can be lost that a newer run does not find.
 */
export async function compactTerm(
  folders: readonly [string, ...string[]],
  { request, term }: { request: AcquireRequest; term: Term },
): Promise<void> {
  const [folder] = folders
  const newest = (await listTerms(folder)).at(-1)
  if (newest === undefined || compareTerms(newest.term, term) !== 0) return
  const { size } = await stat(join(folder, formatTermFile(term, 'log')))
  const flow = await readNewestFlow(folder)
  if (flow === undefined || encodeFlow(flow).length > size / 2) return
  const { file } = await acquireTerm(folders, request)
  await file.close()
}

/** Step 1. Undefined when another was faster: what it left must be judged again. */
async function takeTerm(folder: string, request: AcquireRequest): Promise<Term | undefined> {
  const term = await nextTerm(folder, request)
  const mark = await missingAsTakenOver(publish(join(folder, formatTermFile(term, 'mark')), encodeMark(request.claim)))
  await mark?.close()
  return mark && term
}

/** The term this request may have, judged by the newest there is. @throws Fenced */
async function nextTerm(folder: string, request: AcquireRequest): Promise<Term> {
  const newest = newestTerm(await listTerms(folder))
  if (!newest || newest.run < request.run) return { run: request.run, repeat: 0 }
  if (newest.run > request.run || !(await hasClaim(folder, { term: newest, request })))
    throw fencedError(request, newest.run)
  return { run: request.run, repeat: newest.repeat + 1 }
}

async function hasClaim(folder: string, { term, request }: { term: Term; request: AcquireRequest }): Promise<boolean> {
  const path = join(folder, formatTermFile(term, 'mark'))
  const bytes = await readIfPresent(path)
  return bytes !== undefined && decodeMark(bytes, path) === request.claim
}

/** Steps 2 and 3, but for the sync. Undefined when a newer heir removed the file before it had its name. */
async function startLog(
  folder: string,
  { term, request }: { term: Term; request: AcquireRequest },
): Promise<AcquiredLog | undefined> {
  const predecessor = await readNewestFlow(folder, { before: term })
  const flow = toAcquiredFlow(predecessor, request, new Date())
  const bytes = encodeFlow(flow)
  const file = await missingAsTakenOver(publish(join(folder, formatTermFile(term, 'log')), bytes, { durable: true }))
  return file && { flow, term, file, length: bytes.length }
}

/** A temporary file that vanished was removed by the heir of a newer term, who takes it for a leftover. */
async function missingAsTakenOver<T>(publishing: Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await publishing
  } catch (error) {
    if (toErrno(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Step 4. Without it a run whose predecessor was already removed could go on with an empty flow, until its first write. */
async function assertNewest(
  folder: string,
  asked: { files: readonly TermFile[]; term: Term; request: AcquireRequest } & Pick<OpenFolder, 'assertInPlace'>,
): Promise<void> {
  const { files, term, request, assertInPlace } = asked
  const newest = newestTerm(files)
  if (!newest || compareTerms(newest, term) <= 0) {
    if (await exists(join(folder, formatTermFile(term, 'log')))) return
    // The listing ran while one newer term took over from another, and missed both; or the folder is being removed.
    await assertInPlace()
    return assertNewest(folder, { ...asked, files: await listTerms(folder) })
  }
  if (newest.run > term.run || !(await hasClaim(folder, { term: newest, request })))
    throw fencedError(request, newest.run)
  throw new ClaimLost(`flow ${request.flow.uuid} was acquired once more by the same claim; use that log`)
}

/** Step 5. The proof above needs the order; so at the first file that cannot be removed the rest is left for the next. */
async function removeOlder(folder: string, { files, term }: { files: readonly TermFile[]; term: Term }): Promise<void> {
  try {
    for (const file of files) {
      if (compareTerms(file.term, term) < 0) await missingAsUndefined(unlink(join(folder, file.name)))
    }
  } catch {
    // Leftovers take room and nothing else: every reader goes by the newest.
  }
}
