/** A process of `process-lock.test.ts`: does the work once it is told to, and notes in a file when it begins and ends. */
import { once } from 'node:events'
import { appendFile, readFile } from 'node:fs/promises'
import { doOnce } from './process-lock.ts'

const [lock = '', notes = ''] = process.argv.slice(2)
const content = () => readFile(notes, 'utf8').catch(() => '')

const told = once(process, 'SIGUSR2')
// A listener for a signal does not keep a process running.
const stay = setInterval(() => undefined, 60_000)
console.log('ready')
await told
clearInterval(stay)
await doOnce({
  lock,
  isDone: async () => (await content()).includes('end'),
  work: async () => {
    await appendFile(notes, 'begin\n')
    // Others have the time to look for the lock meanwhile.
    for (let turn = 0; turn < 50; turn += 1) await content()
    await appendFile(notes, 'end\n')
  },
})
console.log('done')
