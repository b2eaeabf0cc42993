/** Every night at three, once, however many services there are: a key makes it at most one, a delay makes it the night. */
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
 * To be called by each process that likes it done: whoever is there when a night's job has ended posts the next.
 *
 * @param options.now what time it is, in milliseconds since 1970
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
    // Where that fails, the board is away: another process, or the next start of this one, posts it.
    if (job.name === 'clean-up') postNext().catch((error: unknown) => console.error(error))
  }
  const unsubscribe = [board.on('consumed', again), board.on('trashed', again)]
  await postNext()
  return () => {
    for (const leave of unsubscribe) leave()
  }
}
