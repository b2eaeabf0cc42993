/** What the conductors of the compose file run, until you mount flows of your own. */
import { input, linear, task } from 'jobboard'

const greet = task('greet', {
  requires: ['name'],
  provides: 'text',
  execute: ({ name }) => `Hello, ${name}!`,
})
const print = task('print', {
  requires: ['text'],
  execute: ({ text }, { log }) => log.info(text),
})

export const hello = linear('hello', input(), greet, print)
