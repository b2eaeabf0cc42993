/** A job every night at three, once for any number of services: a key makes it one job, a delay sets the time. */
import { input, type JobBoard, linear, task } from 'jobboard'

const HOUR = 3_600_000

export interface Store {
  removeOlderThan(days: number): number
}

export const cleanUp = (store: Store) =>
  linear(
    'clean-up',
    input<{ days: number }>(),
    task('remove', {
      requires: ['days'],
      execute: ({ days }: { days: number }) => {
        console.log(`removed ${store.removeOlderThan(days)} files`)
      },
    }),
  )

/**
 * Posts the job of the next night, and the following one when it has ended. Call it in each process that wants the job.
 *
 * @param options.now returns the time in milliseconds since 1970
 */
export async function everyNight(
  board: JobBoard,
  { now = Date.now }: { now?: () => number } = {},
): Promise<() => void> {
  const postNext = async () => {
    const delay = 24 * HOUR - ((now() - 3 * HOUR) % (24 * HOUR))
    await board.post('clean-up', { days: 30 }, { key: 'clean-up', delay })
  }
  const again = ({ job }: { job: { name: string } }) => {
    // A failed post means that the board is away: another process, or the next start of this one, posts the job.
    if (job.name === 'clean-up') postNext().catch((error: unknown) => console.error(error))
  }
  const unsubscribe = [board.on('consumed', again), board.on('trashed', again)]
  await postNext()
  return () => {
    for (const leave of unsubscribe) leave()
  }
}
