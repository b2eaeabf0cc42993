/** Schedules on a board whose clock the program turns: what fires, what is skipped and why, and what people can do. */
import { explainSpec, input, linear, preview, schedule, task } from 'jobboard'
import { workbench } from 'jobboard/testing'

const report = linear(
  'report',
  input<{ region: string }>(),
  task('write', {
    requires: ['region'],
    execute: ({ region }: { region: string }, { schedule: why }) => {
      const how = why?.manual ? 'by hand' : why?.backfill ? 'backfill' : `${why?.missed} missed before`
      console.log(`  ${region}: ${how}`)
    },
  }),
)

const spec = { cron: '30 2 * * *', zone: 'Europe/Berlin' }
console.log(await explainSpec(spec))
for (const { local, note = '' } of await preview(spec, { from: new Date('2027-03-27'), count: 3 }))
  console.log(`  ${local} ${note}`.trimEnd())

await using bench = await workbench({ flows: [report] })
const { board, clock } = bench
const tenants = { eu: { region: 'Europe' }, us: { region: 'America' } }
await board.schedules.put(schedule('hourly', { every: '1h' }, report, { region: '' }, { tenants }))

console.log('an hour later')
clock.advance('1h')
await bench.drain()

console.log('five hours without a conductor')
clock.advance('5h')
await bench.drain()

console.log('paused for two hours, then resumed')
await board.schedules.pause('hourly/us', { reason: 'the database is being moved' })
clock.advance('2h')
const { passed } = await board.schedules.resume('hourly/us')
await bench.drain()
console.log(`  America: ${passed} times had passed`)

console.log('triggered, and backfilled')
await board.schedules.trigger('hourly/us')
await bench.drain()
await board.schedules.backfill('hourly/us', { from: new Date(clock.now() - 2 * 3_600_000) })
await bench.drain()

for (const { id, counts } of await board.schedules.list())
  console.log(id, JSON.stringify({ fired: counts?.fired, skipped: counts?.skipped }))
