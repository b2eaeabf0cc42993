/**
 * A real crontab of 50 entries, replayed minute by minute through a board with a clock that the test turns, on the day in Berlin on which the clock
 * goes from 02:00 to 03:00. The table was computed by another program, by the rules that ISC cron documents.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { schedule } from '../../../src/board/index.ts'
import { boardInternals, memoryTestBackend } from '../../../src/board/internal.ts'
import { formatLocalTime } from '../../../src/schedule/internal.ts'
import { ManualClock } from '../../../src/testing/index.ts'

const ZONE = 'Europe/Berlin'
const MIDNIGHT = Date.parse('2027-03-28T00:00+01:00')
const NEXT_MIDNIGHT = Date.parse('2027-03-29T00:00+02:00')

/** The entry, how often it fires on that day, and the first and the last local time. */
const ENTRIES: readonly (readonly [cron: string, count: number, first: string, last: string])[] = [
  ['17 * * * *', 23, '00:17', '23:17'], // run-parts /etc/cron.hourly
  ['25 6 * * *', 1, '06:25', '06:25'], // run-parts /etc/cron.daily
  ['47 6 * * 7', 1, '06:47', '06:47'], // run-parts /etc/cron.weekly
  ['52 6 1 * *', 0, '-', '-'], // run-parts /etc/cron.monthly
  ['0 */12 * * *', 2, '00:00', '12:00'], // certbot renew
  ['30 3 * * 0', 1, '03:30', '03:30'], // e2scrub_all_cron
  ['10 3 * * *', 1, '03:10', '03:10'], // e2scrub_all -A -r
  ['09,39 * * * *', 46, '00:09', '23:39'], // php sessionclean
  ['5-55/10 * * * *', 138, '00:05', '23:55'], // sa1 1 1
  ['59 23 * * *', 1, '23:59', '23:59'], // sa1 60 2
  ['57 0 * * 0', 1, '00:57', '00:57'], // mdadm checkarray
  ['*/5 * * * *', 276, '00:00', '23:55'], // munin-node
  ['*/15 * * * *', 92, '00:00', '23:45'], // drupal cron
  ['* * * * *', 1380, '00:00', '23:59'], // laravel schedule:run
  ['*/10 * * * *', 138, '00:00', '23:50'], // nextcloud cron.php
  ['30 2 * * *', 1, '03:00', '03:00'], // pg_dump
  ['0 2 * * *', 1, '03:00', '03:00'], // mysqldump
  ['45 2 * * 1-5', 0, '-', '-'], // report of working days
  ['0 4 * * *', 1, '04:00', '04:00'], // logrotate
  ['0 0 * * *', 1, '00:00', '00:00'], // midnight job
  ['0 12 * * *', 1, '12:00', '12:00'], // noon job
  ['15 14 1 * *', 0, '-', '-'], // first of the month
  ['0 22 * * 1-5', 0, '-', '-'], // weekday evening
  ['23 0-23/2 * * *', 11, '00:23', '22:23'], // even hours
  ['5 4 * * sun', 1, '04:05', '04:05'], // Sunday early
  ['0 9-17 * * *', 9, '09:00', '17:00'], // office hours
  ['0 9-17 * * 1-5', 0, '-', '-'], // office hours of working days
  ['*/20 8-18 * * *', 33, '08:00', '18:40'], // poll by day
  ['0,30 * * * *', 46, '00:00', '23:30'], // half hours
  ['0 0 1 1 *', 0, '-', '-'], // new year
  ['0 5 * * 0', 1, '05:00', '05:00'], // weekly trim
  ['0 6,18 * * *', 2, '06:00', '18:00'], // twice a day
  ['1 1 * * *', 1, '01:01', '01:01'], // rkhunter
  ['40 3 * * *', 1, '03:40', '03:40'], // apt daily
  ['0 3 * * *', 1, '03:00', '03:00'], // backup at three
  ['15 3 * * *', 1, '03:15', '03:15'], // backup verify
  ['20 2 * * 6,0', 1, '03:00', '03:00'], // weekend at night
  ['*/30 1-3 * * *', 4, '01:00', '03:30'], // around the change
  ['50 1 * * *', 1, '01:50', '01:50'], // just before the change
  ['5 2-4 * * *', 3, '03:00', '04:05'], // three times at night
  ['0 0 28 3 *', 1, '00:00', '00:00'], // the 28th of March
  ['0 0 28 3 1', 1, '00:00', '00:00'], // 28th of March or Monday
  ['0 7 * 3-10 *', 1, '07:00', '07:00'], // summer half of the year
  ['0 7 * 11-12 *', 0, '-', '-'], // winter
  ['33 */6 * * *', 4, '00:33', '18:33'], // every six hours
  ['7 7 * * 7', 1, '07:07', '07:07'], // seven
  ['*/7 * * * *', 207, '00:00', '23:56'], // every seven minutes
  ['0 1,2,3 * * *', 2, '01:00', '03:00'], // one, two, three
  ['59 1 * * *', 1, '01:59', '01:59'], // a minute before the change
  ['30 2 28 * *', 1, '03:00', '03:00'], // the 28th at half past two
]

test('a day of a crontab fires as the table says', async () => {
  const clock = new ManualClock({ now: new Date(MIDNIGHT - 1_000) })
  const board = await memoryTestBackend({ clock }).open({ who: 'crontab' })
  onTestFinished(() => board.close())
  for (const [index, [cron]] of ENTRIES.entries())
    await board.schedules.put(schedule(`entry ${index}`, { cron, zone: ZONE }, 'run', {}, { overlap: 'allow' }))
  const fired = new Map<string, string[]>()
  let missed = 0
  const scheduler = boardInternals(board).scheduler({
    name: 'crontab',
    onFired: ({ id, posted, skipped }) => {
      missed += skipped.length
      const times = posted.map(({ nominal }) => formatLocalTime(nominal, ZONE).slice(11, 16))
      fired.set(id, [...(fired.get(id) ?? []), ...times])
    },
    onError: (error) => {
      throw error
    },
  })
  onTestFinished(() => scheduler[Symbol.asyncDispose]())
  await scheduler.start()
  const isDue = async () => (await board.schedules.list()).some(({ next }) => next && next.getTime() <= clock.now())
  const fireDue = async () => {
    while (await isDue()) await nextTurn()
  }
  for (clock.advance('1s'); clock.now() < NEXT_MIDNIGHT - 60_000; clock.advance('1m')) await fireDue()
  await fireDue()
  const seen = ENTRIES.map(([cron], index) => {
    const times = fired.get(`entry ${index}`) ?? []
    return [cron, times.length, times[0] ?? '-', times.at(-1) ?? '-']
  })
  expect(seen).toEqual(ENTRIES)
  expect(missed).toBe(0)
  expect(await board.countJobs()).toBe(ENTRIES.reduce((sum, [, count]) => sum + count, 0))
})
