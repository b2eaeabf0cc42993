import { expect, test } from 'vitest'
import { startGuarded } from './guarded-process.ts'

test('lines that a process prints at once are not lost when this process is busy', async () => {
  const starting = startGuarded(['printf', 'one\\ntwo\\n'])
  // All lines are in the pipe before the first one is read.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000)
  const child = await starting
  const lines: string[] = []
  child.onLine((line) => void lines.push(line))
  await child.ended
  expect(lines).toEqual(['one', 'two'])
})

test('a command that does not exist ends with the exit code of the shell', async () => {
  const child = await startGuarded(['/no/such/program'])
  expect(await child.ended).toBe(127)
})
