/** Limits on a board whose clock the program turns: an API that permits ten requests a second, two tenants, and one of them greedy. */
import { input, linear, TooManyRequests, task } from 'jobboard'
import { workbench } from 'jobboard/testing'

interface Call {
  readonly tenant: string
}

const started: string[] = []
let refusals = 0
const call = linear(
  'call',
  input<Call>(),
  task('request', {
    requires: ['tenant'],
    execute: async ({ tenant }: Call) => {
      started.push(tenant)
      refusals -= 1
      if (refusals >= 0) throw new TooManyRequests({ key: 'api', retryAfter: '3s' })
    },
  }),
)

await using bench = await workbench({ flows: [call] })
const { board, clock } = bench
await board.limits.set('api', { rate: { limit: 10, per: '1s', burst: 5 } })
await board.limits.set('tenant/*', { fair: true })

/** Runs what may start now, and prints how many requests of each tenant were made. */
async function runAndCount(): Promise<void> {
  await bench.drain()
  const count = (tenant: string) => started.filter((each) => each === tenant).length
  console.log(`  greedy ${count('greedy')}, patient ${count('patient')}`)
  started.length = 0
}

const post = (tenant: string) => board.post(call, { tenant }, { limits: ['api', `tenant/${tenant}`] })
for (let n = 0; n < 30; n += 1) await post('greedy')
for (let n = 0; n < 4; n += 1) await post('patient')

console.log('at once: the burst, in turns')
await runAndCount()

console.log('a second later: the burst again, because no more tokens are saved up')
clock.advance('1s')
await runAndCount()

console.log('three times a tenth of a second later: one each')
for (let n = 0; n < 3; n += 1) {
  clock.advance('100ms')
  await runAndCount()
}

console.log('the API refuses one request: nobody starts for three seconds')
refusals = 1
clock.advance('100ms')
await runAndCount()
clock.advance('2s')
await runAndCount()
clock.advance('1s')
await runAndCount()

console.log('stopped by hand, then resumed')
await board.limits.stop('api', { reason: 'it is being repaired' })
clock.advance('1s')
await runAndCount()
await board.limits.resume('api')
await runAndCount()
const [api] = await board.limits.list()
console.log(api?.key, JSON.stringify(api?.rate))
