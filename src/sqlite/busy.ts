/** Repeats what was refused because another process writes. */
import { NotConnected } from '../core/errors.ts'
import { monotonic, sleep } from '../core/time.ts'
import { isBusy, toFileError } from './errors.ts'

/** The time for which a process waits for the write lock of a file, in milliseconds. */
export const MAX_BUSY_MS = 10_000
/** The pause before another try, in milliseconds: timers allow no shorter one. */
export const BUSY_PAUSE_MS = 1

/** Returns the error of a process that has waited for the write lock in vain. @param others who uses the file, as `; text` */
export function busyError(path: string, others = ''): NotConnected {
  const why = `this process did not get the write lock of ${path} within ${MAX_BUSY_MS / 1_000} s${others}`
  return new NotConnected(`${why}; nothing was changed, try again`)
}

/** Does the work as soon as no other process prevents it. @throws NotConnected; other errors of SQLite as errors of this library */
export async function retryWhileBusy<T>(path: string, work: () => T): Promise<T> {
  const until = monotonic() + MAX_BUSY_MS
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error)) throw toFileError(error, path)
      if (monotonic() > until) throw busyError(path)
    }
    await sleep(BUSY_PAUSE_MS)
  }
}
