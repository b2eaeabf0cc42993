/**
 * Acquires a flow, and proves that no acknowledged write is lost when the flow passes to another run.
 *
 * An acquire
 *  1. links its mark into place, which only one of several with the same term can do;
 *  2. reads the newest log below its term;
 *  3. links its own log, which begins with all it has read, and syncs the folder;
 *  4. checks for a newer term, then whether its own log still exists, as a writer does; gives up if there is a newer
 *     one;
 *  5. removes the files of older terms, oldest first, one after the other.
 *
 * A writer appends to its log, syncs it, then (A) lists the folder to find a newer term, and (B) checks whether its own
 * log still exists. Only then is the write acknowledged. (See `directory-flow-log.ts`.)
 *
 * **No acknowledged write is missed.** Suppose the mark of a later acquire was in place when the writer's listing
 * began. Either the listing shows it, and the write is refused; or it was removed while the listing ran. Then step 5 of
 * the acquire that removed it had already removed the writer's log, as the older one, and (B) refuses the write.
 * Therefore, a write is acknowledged only if the listing began before any later mark was there; the record was in the
 * log by then, and every acquire reads after it has set its mark. It reads that log, or one made of it: logs are
 * removed only by acquires that passed step 4, whose own log was thus in place before any newer mark, and so before any
 * newer acquire began to read.
 *
 * **No refused write comes back.** A record that a former writer appends after the acquire has read is in a file that
 * is never again read as the newest. A refused write may have been seen by the acquire only if the two raced: it is
 * then part of the flow that the acquire returned.
 *
 * **A book that is created again is not changed.** All steps are done in the folder that was opened at the beginning
 * (`inFolder`): where the book was destroyed meanwhile and another created in its place, the terms of its flows may be
 * the same. The acquire then begins again.
 *
 * **Power failures.** The log is synced before it has its name, and the name before the acquire is acknowledged, so a
 * predecessor's log is removed only when its successor's is durable. A mark need not be synced: it guards against
 * running writers, and none survives the machine; after a restart the log under the term's name is enough.
 */
import { type FileHandle, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { ClaimLost, StorageFailure } from '../../core/errors.ts'
import { createFlowDetail, toAcquiredFlow } from '../flow-record.ts'
import type { FlowDetail } from '../models.ts'
import type { AcquireRequest, FlowRequest } from '../persistence.ts'
import { fencedError, supersededError } from '../requests.ts'
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

/**
 * The limit of attempts. An attempt fails only because another process made progress, so more than a few mean a serious
 * fault.
 */
const MAX_ACQUIRE_ATTEMPTS = 20

interface AcquireOptions {
  /** Whether this claim has acquired the flow before. Where the book was created again since, there is nothing to acquire. */
  readonly isRepeated?: boolean
}

/**
 * Acquires a flow in its folder.
 *
 * @param folders the flow's folder first, then the folders above it whose entries must be durable first
 * @throws Fenced @throws ClaimLost when the same claim acquired the flow again meanwhile
 */
export async function acquireTerm(
  folders: readonly [string, ...string[]],
  request: AcquireRequest,
  options: AcquireOptions = {},
): Promise<AcquiredLog> {
  const [name, ...above] = folders
  return inFolder(name, (folder) => acquireIn(folder, { above, request, ...options }))
}

async function acquireIn(
  { path: folder, assertInPlace }: OpenFolder,
  {
    above,
    request,
    ...options
  }: AcquireOptions & { readonly above: readonly string[]; readonly request: AcquireRequest },
): Promise<AcquiredLog> {
  for (let attempt = 1; attempt <= MAX_ACQUIRE_ATTEMPTS; attempt++) {
    const term = await takeTerm(folder, request, options)
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
  throw new StorageFailure(
    `flow ${request.flow.uuid} is acquired by others faster than this run can acquire it; try again`,
    {
      retryable: true,
    },
  )
}

/** The term of a flow that was created before its first run: older than every run. */
const FIRST_TERM: Term = { run: 0, repeat: 0 }

/**
 * Creates a flow unless it was created or acquired before; resolves to whether it was created. The caller must sync the
 * folder.
 */
export function startFlow(folder: string, request: FlowRequest): Promise<boolean> {
  return inFolder(folder, async ({ path, assertInPlace }) => {
    const isStarted = await startFlowIn(path, request)
    await assertInPlace()
    return isStarted
  })
}

async function startFlowIn(folder: string, request: FlowRequest): Promise<boolean> {
  if (newestTerm(await listTerms(folder))) return false
  const path = join(folder, formatTermFile(FIRST_TERM, 'log'))
  const file = await missingAsTakenOver(
    publish(path, encodeFlow(createFlowDetail(request, new Date())), { durable: true }),
  )
  await file?.close()
  // A run that acquired meanwhile may not have seen this flow, and then the flow is that run's. The checks have the
  // order of a writer's.
  const newest = newestTerm(await listTerms(folder))
  return file !== undefined && newest?.run === FIRST_TERM.run && (await exists(path))
}

/**
 * Replaces the log of a finished flow by a snapshot, where that is much shorter. The same claim acquires the flow
 * again, so nothing can be lost that a newer run would not find.
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

/** Does step 1. Returns undefined when another process was faster: the folder must be read again. */
async function takeTerm(folder: string, request: AcquireRequest, options: AcquireOptions): Promise<Term | undefined> {
  const term = await nextTerm(folder, request, options)
  const mark = await missingAsTakenOver(publish(join(folder, formatTermFile(term, 'mark')), encodeMark(request.claim)))
  await mark?.close()
  return mark && term
}

/** Returns the term that this request may have, according to the newest one. @throws Fenced @throws ClaimLost */
async function nextTerm(
  folder: string,
  request: AcquireRequest,
  { isRepeated = false }: AcquireOptions,
): Promise<Term> {
  const newest = newestTerm(await listTerms(folder))
  if (!newest || newest.run < request.run) {
    if (isRepeated) throw supersededError(request, undefined)
    return { run: request.run, repeat: 0 }
  }
  if (newest.run > request.run || !(await hasClaim(folder, { term: newest, request })))
    throw fencedError(request, newest.run)
  return { run: request.run, repeat: newest.repeat + 1 }
}

async function hasClaim(folder: string, { term, request }: { term: Term; request: AcquireRequest }): Promise<boolean> {
  const path = join(folder, formatTermFile(term, 'mark'))
  const bytes = await readIfPresent(path)
  return bytes !== undefined && decodeMark(bytes, path) === request.claim
}

/**
 * Does steps 2 and 3, without the sync. Returns undefined when a newer acquire removed the file before it had its name.
 */
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

/** Returns undefined when the temporary file vanished: the acquire of a newer term has removed it. */
async function missingAsTakenOver<T>(publishing: Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await publishing
  } catch (error) {
    if (toErrno(error) === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Does step 4. Without it a run whose predecessor was already removed could continue with an empty flow, until its
 * first write.
 */
async function assertNewest(
  folder: string,
  claim: { files: readonly TermFile[]; term: Term; request: AcquireRequest } & Pick<OpenFolder, 'assertInPlace'>,
): Promise<void> {
  const { files, term, request, assertInPlace } = claim
  const newest = newestTerm(files)
  if (!newest || compareTerms(newest, term) <= 0) {
    if (await exists(join(folder, formatTermFile(term, 'log')))) return
    // The listing ran while one newer term took over from another, and missed both; or the folder is being removed.
    await assertInPlace()
    return assertNewest(folder, { ...claim, files: await listTerms(folder) })
  }
  if (newest.run > term.run || !(await hasClaim(folder, { term: newest, request })))
    throw fencedError(request, newest.run)
  throw new ClaimLost(`flow ${request.flow.uuid} was acquired once more by the same claim; use that log`)
}

/**
 * Does step 5. The proof above requires the order; so after the first file that cannot be removed the others are kept,
 * too.
 */
async function removeOlder(folder: string, { files, term }: { files: readonly TermFile[]; term: Term }): Promise<void> {
  try {
    for (const file of files) {
      if (compareTerms(file.term, term) < 0) await missingAsUndefined(unlink(join(folder, file.name)))
    }
  } catch {
    // Old files only take space: every reader uses the newest.
  }
}
