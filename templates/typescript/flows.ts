/** The flows of this project. Each exported flow can be posted, and conductors run it. */
import { input, linear, task } from 'jobboard'

const greet = task('greet', {
  requires: ['name'],
  provides: 'text',
  execute: ({ name }: { name: string }) => `Hello, ${name}!`,
})

const print = task('print', {
  requires: ['text'],
  execute: ({ text }: { text: string }, { log }) => log.info(text),
})

export const hello = linear('hello', input<{ name: string }>(), greet, print)
