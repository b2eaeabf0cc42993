/** Children whose parent is killed, stopped, or ends: none of them, and none of what they have started, goes on. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, expect } from 'vitest'
import { compiled } from '../support/compiled.ts'
import { testRows, variant } from '../variant.ts'
import { CHILD_MAIN, isAlive, newFile, pidsIn, sendSignal, whenDead } from './pools.ts'

const WORKER = new URL('./worker.mjs', import.meta.url).href
const PARENT = fileURLToPath(new URL('./parent-child.ts', import.meta.url))

const started: ChildProcess[] = []

afterEach(() => {
  for (const parent of started.splice(0)) parent.kill('SIGKILL')
})

async function startParent(options: { readonly silenceMs?: number; readonly kind?: string } = {}) {
  const { silenceMs = 0, kind = 'grandchild' } = options
  const file = await newFile()
  const [script, program] = await Promise.all([compiled(PARENT), compiled(CHILD_MAIN)])
  const parent = spawn(process.execPath, [script, program, WORKER, file, String(silenceMs), kind], { stdio: 'inherit' })
  started.push(parent)
  return { parent, pids: await pidsIn(file, /grandchild/i.test(kind) ? 2 : 1) }
}

testRows([['grandchild'], ['waitingGrandchild'], ['ignore']], ([kind]) => kind === 'grandchild')(
  'a parent that is killed takes its children along (%s)',
  async (kind) => {
    const { parent, pids } = await startParent({ kind })
    expect(pids.filter(isAlive)).toEqual(pids)
    parent.kill('SIGKILL')
    await whenDead(pids)
  },
)

variant('a parent that is stopped for longer than its session lasts loses its children', async () => {
  const { parent, pids } = await startParent({ silenceMs: 2_000 })
  parent.kill('SIGSTOP')
  await whenDead(pids)
  const ended = once(parent, 'exit')
  parent.kill('SIGCONT')
  parent.kill('SIGTERM')
  await ended
})

variant('children that are stopped together with their parent go on with it', async () => {
  const { parent, pids } = await startParent({ silenceMs: 1_500, kind: 'ignore' })
  const all = [parent.pid, ...pids]
  for (const pid of all) sendSignal(pid, 'SIGSTOP')
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  for (const pid of all) sendSignal(pid, 'SIGCONT')
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  expect(pids.filter(isAlive)).toEqual(pids)
})
