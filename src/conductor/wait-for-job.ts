/** Waits for a job of which only the uuid is known, whatever has become of it. */
import type { JobBoard, WaitOptions } from '../board/index.ts'
import { NotFound } from '../core/errors.ts'
import { assertOptions } from '../core/options.ts'
import { monotonic, toMilliseconds } from '../core/time.ts'
import { type Tracked, type TrackOptions, track } from './track.ts'

/** Where to look for a job, and how long to wait. */
export interface WaitForJobOptions extends TrackOptions, WaitOptions {}

/** How a job ended, as {@link track} says it: `done`, `failed`, `trashed`, or `unknown`. */
export type Ended = Exclude<Tracked, { readonly status: 'waiting' | 'running' }>

/**
 * Resolves when the job has left the board, at once if it has left already, with how it ended: `done` with the results of
 * its tasks, `failed` or `trashed` with the failures, or `unknown` where neither the board nor the logbooks know of it. The
 * job may have been posted by any process, and may have ended before the call.
 *
 * Results and failures may hold secrets.
 *
 * @throws Timeout when the time is over first
 * @throws what board and logbooks throw when they are away
 * @example
 * const ended = await waitForJob(uuid, { board, persistence, timeout: '30s' })
 * if (ended.status === 'done') console.log(ended.results)
 */
export async function waitForJob(uuid: string, options: WaitForJobOptions): Promise<Ended> {
  const known = { board: true, persistence: true, book: true, timeout: true, signal: true } as const
  assertOptions(options, known, 'waitForJob')
  const { timeout, signal, ...places } = options
  const end = timeout === undefined ? undefined : monotonic() + toMilliseconds(timeout, 'timeout')
  for (;;) {
    signal?.throwIfAborted()
    const left = end === undefined ? {} : { timeout: Math.max(0, end - monotonic()) }
    const seen = await waitUntilEnded(uuid, places.board, { ...left, ...(signal ? { signal } : {}) })
    const tracked = await track(uuid, { ...(seen ? { book: seen.book } : {}), ...places })
    // Between the two looks it may have been restored from the trash.
    if (tracked.status === 'waiting' || tracked.status === 'running') continue
    if (tracked.status !== 'unknown' || seen?.end !== 'COMPLETE') return tracked
    // Whoever ran it keeps no logbooks here: a loop of one's own, say.
    return { status: 'done', uuid, at: new Date(), tasks: {}, results: {} }
  }
}

interface ObservedEnd {
  readonly end: 'COMPLETE' | 'TRASHED'
  /** The uuid of its logbook. */
  readonly book: string
}

/** Undefined where the job is not on the board. */
async function waitUntilEnded(uuid: string, board: JobBoard, options: WaitOptions): Promise<ObservedEnd | undefined> {
  try {
    const job = await board.find(uuid)
    return { end: await job.wait(options), book: job.book.uuid }
  } catch (error) {
    if (error instanceof NotFound) return undefined
    throw error
  }
}
