/** A job every night at three, once for any number of services. */
import { input, linear, schedule, task } from 'jobboard'

export interface Store {
  removeOlderThan(days: number): number
}

export const cleanUp = (store: Store) =>
  linear(
    'clean-up',
    input<{ days: number }>(),
    task('remove', {
      requires: ['days'],
      execute: ({ days }: { days: number }, ctx) => {
        const at = ctx.schedule?.nominal.toISOString().slice(11, 16)
        console.log(`the night's ${at}: removed ${store.removeOlderThan(days)} files`)
      },
    }),
  )

/** Each service declares it: `startConductor({ …, schedules: [everyNight] })`. It is one schedule on the board. */
export const everyNight = schedule('clean-up', { cron: '0 3 * * *' }, 'clean-up', { days: 30 })
