/** Waits for the end of a job by its UUID or its reference alone. */
import type { JobBoard, WaitOptions } from '../board/index.ts'
import { answerInTime } from '../core/async/abort.ts'
import { NotFound, Timeout } from '../core/errors.ts'
import { parseReference } from '../core/job-names.ts'
import { assertOptions } from '../core/options.ts'
import { monotonic, toMilliseconds } from '../core/time.ts'
import { type Tracked, type TrackOptions, track } from './track.ts'

/** The locations in which a job is searched, and the time limit. */
export interface WaitForJobOptions extends TrackOptions, WaitOptions {}

/** The end of a job, as {@link track} returns it: `done`, `failed`, `trashed`, or `unknown`. */
export type Ended = Exclude<Tracked, { readonly status: 'waiting' | 'running' }>

/**
 * Resolves when the job has left the board, at once if it has left already, with its end: `done` with the results of
 * its tasks, `failed` or `trashed` with the failures, or `unknown` when neither the board nor the logbooks have it. The
 * job may have been posted by any process, and may have ended before the call.
 *
 * Results and failures may contain secrets.
 *
 * @param job the UUID of the job, or its reference
 *
 * @throws Timeout when the time is over first
 * @throws the errors of board and logbooks when they are away
 * @example
 * const ended = await waitForJob(uuid, { board, persistence, timeout: '30s' })
 * if (ended.status === 'done') console.log(ended.results)
 */
export async function waitForJob(job: string, options: WaitForJobOptions): Promise<Ended> {
  const known = { board: true, persistence: true, book: true, timeout: true, signal: true } as const
  assertOptions(options, known, 'waitForJob')
  const { timeout, signal } = options
  const late = (time: string) => new Timeout(`job ${job} has not ended within ${time}`)
  return answerInTime({ timeout, signal }, { work: () => waitForEnd(job, options), late })
}

async function waitForEnd(job: string, { timeout, signal, ...places }: WaitForJobOptions): Promise<Ended> {
  const end = timeout === undefined ? undefined : monotonic() + toMilliseconds(timeout, 'timeout')
  const { uuid } = parseReference(job)
  // Once the job was restored from the trash, its reference is another one.
  for (let name = job; ; name = uuid) {
    signal?.throwIfAborted()
    const left = end === undefined ? {} : { timeout: Math.max(0, end - monotonic()) }
    const seen = await waitUntilEnded(name, places.board, { ...left, ...(signal ? { signal } : {}) })
    const tracked = await track(uuid, { ...(seen ? { book: seen.book } : {}), ...places })
    // The job may have been restored from the trash between the two reads.
    if (tracked.status === 'waiting' || tracked.status === 'running') continue
    if (tracked.status !== 'unknown' || seen?.end !== 'COMPLETE') return tracked
    // The owner of the job keeps no logbooks here; it may be a loop of the application.
    return { status: 'done', uuid, at: new Date(), tasks: {}, results: {} }
  }
}

interface ObservedEnd {
  readonly end: 'COMPLETE' | 'TRASHED'
  /** The UUID of its logbook. */
  readonly book: string
}

/** Waits for the end of a job on the board. Returns undefined when the job is not there. */
async function waitUntilEnded(uuid: string, board: JobBoard, options: WaitOptions): Promise<ObservedEnd | undefined> {
  try {
    const job = await board.find(uuid)
    return { end: await job.wait(options), book: job.book.uuid }
  } catch (error) {
    if (error instanceof NotFound) return undefined
    throw error
  }
}
