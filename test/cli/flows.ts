/** The flows of `workplace.ts`, for tests that run them without the command line. */
import { input, linear, NonRetryable, task } from '../../src/index.ts'

const greet = task('greet', {
  requires: ['name'],
  provides: 'text',
  execute: async ({ name }: { name: string }) => `Hello, ${name}`,
})
const refuse = task('refuse', {
  execute: async () => {
    throw new NonRetryable('the paper\nis out', { cause: new Error('no tray') })
  },
})

export const hello = linear({ name: 'hello', version: '2.1' }, input<{ name: string }>(), greet)
export const refused = linear('refused', input(), refuse)
