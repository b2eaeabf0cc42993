/**
 * Waits for the end of a job that was posted in a transaction of the caller's own. Boards emit nothing about a transaction
 * that is rolled back, so without this a wait for such a job would never end.
 */
import type { Stoppable } from '../../core/async/abort-flag.ts'
import { NotFound } from '../../core/errors.ts'
import { backoffDelay, sleep } from '../../core/time.ts'
import type { Backend, TransactionState } from '../backend.ts'
import { type JobEntry, waitForEnd } from '../model/entry.ts'

/** The pauses between two looks at a transaction that is still open: short at first, since most are committed at once. */
const POLL_BACK_OFF_MS = { first: 50, max: 2_000, jitter: 'none' } as const

export interface ExpectedJobOptions {
  readonly backend: Pick<Backend, 'transactionState' | 'sections'>
  /** The transaction that posts the job, as the backend names it. */
  readonly transaction: string
  /** Resolves when the view has everything that was committed before the call. */
  readonly refresh: () => Promise<void>
  /** The signal that ends the wait. */
  readonly signal: Stoppable
}

/**
 * Resolves with how the job left the board.
 *
 * @throws NotFound when the transaction was rolled back, whole or to a savepoint before the post
 */
export async function waitForExpectedEnd(
  entry: JobEntry,
  options: ExpectedJobOptions,
): Promise<'COMPLETE' | 'TRASHED'> {
  const ended = waitForEnd(entry)
  if (entry.stored || entry.ended) return ended
  const over = new AbortController()
  try {
    return await Promise.race([ended, rejectIfNeverPosted(entry, { ...options, over: over.signal })])
  } finally {
    over.abort()
  }
}

/** Rejects when the job turns out not to have been posted; else it never resolves. */
async function rejectIfNeverPosted(
  entry: JobEntry,
  { over, ...options }: ExpectedJobOptions & { readonly over: AbortSignal },
): Promise<never> {
  const isOpen = () => !(entry.stored || entry.ended || over.aborted || options.signal.aborted)
  for (let looks = 1; isOpen(); looks += 1) {
    const state = await stateOf(options)
    if (state === 'rolled back') throw new NotFound(`${toJobName(entry)}: its transaction was rolled back`)
    if (state === 'unknown') break
    if (state === 'committed') {
      await assertPosted(entry, options)
      break
    }
    await sleep(backoffDelay(looks, POLL_BACK_OFF_MS), { signal: over }).catch(() => undefined)
  }
  return new Promise<never>(() => undefined)
}

/** Returns the state of the transaction; `open` without a connection, so that the next look can succeed. */
async function stateOf({ backend, transaction }: ExpectedJobOptions): Promise<TransactionState> {
  return (await backend.transactionState?.(transaction).catch(() => 'open' as const)) ?? 'unknown'
}

/** Checks that the commit contained the post: the transaction may have been rolled back to a savepoint before it. @throws NotFound */
async function assertPosted(entry: JobEntry, { backend, refresh }: ExpectedJobOptions): Promise<void> {
  // Without a connection nothing is known yet: the view receives the job later, if it was posted.
  const known = await refresh().then(
    () => true,
    () => false,
  )
  if (!known || entry.stored || entry.ended) return
  const statuses = await backend.sections?.statusOf([entry.id ?? '']).catch(() => undefined)
  if (entry.stored || entry.ended || statuses?.[0] !== 'gone') return
  const message =
    'its transaction was committed without it (rolled back to a savepoint before the post), or the job has ended'
  throw new NotFound(`${toJobName(entry)}: ${message}`)
}

function toJobName({ id }: JobEntry): string {
  return `job ${id} was never posted`
}
