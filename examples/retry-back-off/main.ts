/** A flow that is retried after a failure, each time after a longer pause, until its retry gives up. */
import { backOff, input, linear, runFlow, task } from 'jobboard'

let asked = 0

const connect = task('connect', {
  requires: ['attempt'],
  provides: 'connection',
  execute: ({ attempt }: { attempt: number }) => {
    console.log(`attempt ${attempt}: connected`)
    return attempt
  },
  revert: ({ attempt }) => console.log(`attempt ${attempt}: disconnected`),
})

const fetch = task('fetch', {
  requires: ['connection'],
  provides: 'page',
  execute: () => {
    asked += 1
    // A server that returns when to ask again. Without `retryAfter` the pause is that of the retry.
    if (asked === 1) throw Object.assign(new Error('503: come back later'), { retryAfter: '20ms' })
    if (asked === 2) throw new Error('the line is dead')
    return 'index.html'
  },
})

const download = linear(
  { name: 'download', retry: backOff({ attempts: 4, first: '10ms', max: '1s', provides: 'attempt' }) },
  input(),
  connect,
  fetch,
)

const { results } = await runFlow(download, {})
console.log(`${results.page}, in attempt ${results.attempt}`)
