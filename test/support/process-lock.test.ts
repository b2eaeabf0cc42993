/** Test files run in processes, and several checkouts may be tested on one machine: apt-get fails where another one runs. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { usual as test, variant } from '../variant.ts'
import { startNode } from './node-process.ts'
import { doOnce, whenFree } from './process-lock.ts'

const CHILD = new URL('./process-lock-child.ts', import.meta.url)
/** Larger than any process id. */
const NOBODY = String(2 ** 30)

let folder: string
let lock: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'jobboard-'))
  lock = join(folder, 'lock')
})

afterEach(() => rm(folder, { recursive: true }))

variant('of processes that need the same work one does it, and the others wait for its end', async () => {
  const notes = join(folder, 'notes')
  // The process that had begun was killed.
  await writeFile(lock, NOBODY)
  const started = await Promise.all(Array.from({ length: 4 }, () => startNode(CHILD, [lock, notes])))
  try {
    await Promise.all(started.map((child) => child.says('ready')))
    for (const child of started) child.signal('SIGUSR2')
    await Promise.all(started.map((child) => child.says('done')))
  } finally {
    await Promise.all(started.map((child) => child[Symbol.asyncDispose]()))
  }
  expect(await readFile(notes, 'utf8')).toBe('begin\nend\n')
})

test('a lock whose process is gone is free', async () => {
  await writeFile(lock, NOBODY)
  await whenFree(lock)
  await expect(readFile(lock)).rejects.toMatchObject({ code: 'ENOENT' })
})

test('work that fails is not done again, and leaves no lock', async () => {
  let count = 0
  const work = async () => {
    count += 1
    throw new Error('no such package')
  }
  await expect(doOnce({ lock, isDone: async () => false, work })).rejects.toThrow('no such package')
  expect(count).toBe(1)
  await whenFree(lock)
})
