/** Tasks one after the other: each gets earlier results. When one fails, the others are reverted, backwards. */
import { input, linear, runFlow, task } from 'jobboard'

const measure = task('measure', {
  requires: ['text'],
  provides: ['words', 'letters'],
  execute: ({ text }: { text: string }): [number, number] => [text.split(' ').length, text.replaceAll(' ', '').length],
})

const reserve = task('reserve', {
  requires: ['words'],
  execute: ({ words }: { words: number }) => console.log(`reserved room for ${words} words`),
  revert: ({ words }) => console.log(`gave back the room for ${words} words`),
})

const print = task('print', {
  requires: ['text', 'limit'],
  optional: ['font'],
  // The argument limit of the task is provided under the name letters.
  rebind: { limit: 'letters' },
  execute: ({ text, limit, font = 'serif' }: { text: string; limit: number; font?: string }) => {
    if (limit > 20) throw new Error(`${limit} letters do not fit`)
    console.log(`${text} (${limit} letters, ${font})`)
  },
})

const publish = linear('publish', input<{ text: string }>(), measure, reserve, print)

const { results } = await runFlow(publish, { text: 'to be or not to be' })
console.log(results)
await runFlow(publish, { text: 'the quick brown fox jumps over the lazy dog' }).catch((error: Error) =>
  console.log(`failed: ${error.message}`),
)
