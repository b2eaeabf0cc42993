/** Tasks that do not wait for each other, and one that waits for all of them. */
import { setTimeout } from 'node:timers/promises'
import { input, linear, reduceTask, runFlow, task, unordered } from 'jobboard'

let running = 0
let most = 0

const count = <const N extends string>(name: N, size: number) =>
  task(name, {
    requires: ['disk'],
    provides: name,
    execute: async ({ disk }: { disk: string }) => {
      running += 1
      most = Math.max(most, running)
      await setTimeout(20)
      running -= 1
      return disk.length * size
    },
  })

const [photos, films, mails] = [count('photos', 10), count('films', 100), count('mails', 1)]
const sum = reduceTask('sum', {
  requires: ['photos', 'films', 'mails'],
  provides: 'total',
  reduce: (before: number, size: number) => before + size,
})

const usage = linear(
  'usage',
  input<{ disk: string }>(),
  unordered('count', input<{ disk: string }>(), photos, films, mails),
  sum,
)

const { results } = await runFlow(usage, { disk: 'sda' })
console.log(results)
console.log(`at once: ${most}`)
most = 0
await runFlow(usage, { disk: 'sda' }, { concurrency: 2 })
console.log(`at once with concurrency 2: ${most}`)
