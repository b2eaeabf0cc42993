/**
 * The posting: the record of a job that `post` writes and each claim updates. It has TaskFlow's fields (`uuid`, `name`,
 * `priority`, `details`, `book`) and fields of this library. Unknown fields are kept unchanged, so that two releases and
 * TaskFlow can share a board.
 */
import { MAX_LISTED_ATTEMPTS, type RecordedAttempt } from '../attempts.ts'
import type { StoredBackOff } from '../back-off.ts'
import type { Priority } from '../claim-order.ts'
import type { StoredDependency } from '../dependencies.ts'
import type { StoredLimits } from '../limits.ts'
import type { Resources } from '../resources.ts'

/** The newest version of the posting's layout. A larger one was written by a newer release, and is left to processes that can read it. */
export const NEWEST_FORMAT = 6
/** The version of most postings. Postings with dependencies have the next version: a release that does not know them would run the job at once. */
export const POSTING_FORMAT = 1
const FORMAT_WITH_DEPENDENCIES = 2
/** The version of postings in batches: a release that does not know them would not count the end of the job. */
const FORMAT_WITH_BATCH = 3
/** The version of postings whose key has a window: a release that does not know windows would free the key with the end of the job. */
const FORMAT_WITH_WINDOW = 4
/** The version of postings that allow more failures than earlier releases count: to these they would be invalid. */
const FORMAT_WITH_MANY_ATTEMPTS = 5
/** The version of postings in a queue: conductors of a release that knows no queues would claim them all. */
const FORMAT_WITH_QUEUE = 6

/** The record of a job on the board: written by `post`, updated by claims. Times are in milliseconds. */
export interface Posting {
  readonly uuid: string
  readonly name: string
  readonly details: Details
  /** The logbook; by default the logbook has the job's uuid and name. */
  readonly book?: { readonly uuid: string; readonly name: string }
  readonly priority: Priority
  /** The queue; absent for the default one, unless the job was moved there. */
  readonly queue?: string
  /** The resources that the job owns while it runs. */
  readonly resources?: Resources
  /** The limits that the job keeps, besides the limit of its flow. */
  readonly limits?: StoredLimits
  /** The number of times that resources or limits were added, because a conductor claimed the job without what its flow declares. */
  readonly amended?: number
  /** The key: at most one job with it is on the board. */
  readonly key?: string
  /** The window of the key: milliseconds after the post, by the server's clock, for which it stays taken. See `key.ts`. */
  readonly keyFor?: number
  /** The name of the board object that posted the job, for people. */
  readonly postedBy?: string
  /** The span that has posted the job, in the form of W3C Trace Context; absent where its poster traces nothing. */
  readonly traceparent?: string
  readonly tracestate?: string
  /** The jobs after which the job is run. */
  readonly after?: readonly StoredDependency[]
  /** The uuid of the batch that counts the job. */
  readonly batch?: string
  /** Milliseconds after the last write, by the server's clock, before which the job is not claimed. A claim removes the delay. */
  readonly delay?: number
  /** Milliseconds after the post, by the server's clock, after which a job that was never claimed goes to the trash: see `expiry.ts`. */
  readonly expiresAfter?: number
  /**
   * Milliseconds from the post to the post that has replaced it, which `keyFor` and `expiresAfter` contain: see `taken-key.ts`. 0 for a
   * job that was restored since.
   */
  readonly replacedAfter?: number
  /** The incarnation of the owner that claims its own post: while it lives, the job does not expire. See `claims/incarnation.ts`. */
  readonly reservedFor?: string
  /** Whether its poster claims the job itself: then no other post replaces it. */
  readonly reserved?: true
  /** The maximum duration of one run, in milliseconds from its claim. */
  readonly deadline?: number
  /** The handling of the job when its owner dies, or loses its session and lives: with `fail` it is trashed; if absent, it is run again. */
  readonly onOwnerLost?: 'fail'
  /** The number of failed runs after which the job is trashed. */
  readonly maxAttempts: number
  /** The back-off after failed runs; absent for the default. */
  readonly backOff?: StoredBackOff
  /** The milliseconds after the end of the job for which its results can be read; absent for as long as they are kept. */
  readonly resultTtl?: number
  /** The names of the options that the caller of `post` gave and that settings of the flow can replace at a claim; absent without such an option. */
  readonly explicit?: readonly string[]
  readonly format: number
  /** The number of the newest run, which is the number of claims of the job. It is never reset. */
  readonly runs: number
  /** The first and the newest attempts, oldest first; the others are counted: see `attempts.ts`. */
  readonly attempts: readonly RecordedAttempt[]
}

/** The details of a job: conductors use `flow`, `version` and `store`, the application may add other fields. */
export interface Details {
  /** The name of the flow to run, and its version where that matters. */
  readonly flow?: string
  readonly version?: string
  /** The flow's inputs. */
  readonly store?: object
  readonly [key: string]: unknown
}

/** Returns the version of a posting's layout: the oldest one whose releases keep all that it says. */
export function toFormat({
  after,
  batch,
  keyFor,
  maxAttempts = 0,
  queue,
}: {
  readonly after?: unknown
  readonly batch?: unknown
  readonly keyFor?: unknown
  readonly maxAttempts?: unknown
  readonly queue?: unknown
}): number {
  if (queue !== undefined) return FORMAT_WITH_QUEUE
  if (Number(maxAttempts) > MAX_LISTED_ATTEMPTS) return FORMAT_WITH_MANY_ATTEMPTS
  if (keyFor !== undefined) return FORMAT_WITH_WINDOW
  if (batch) return FORMAT_WITH_BATCH
  return after ? FORMAT_WITH_DEPENDENCIES : POSTING_FORMAT
}

/** Returns the posting of a job that is moved to a queue. The default one is named, too: the posting as it was posted may have another. */
export function moveTo(posting: Posting, queue: string): Posting {
  return { ...posting, queue, format: Math.max(posting.format, FORMAT_WITH_QUEUE) }
}
