/** A flow that is tried again after a failure, each time after a longer wait, until its retry gives up. */
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
    // A server that says itself when it wants to be asked again; the wait of the retry is for those that do not.
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
