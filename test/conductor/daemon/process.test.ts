/** What a conductor, or waiting for a job, means for the process they are in. Boards in memory: nothing else keeps it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished } from 'vitest'
import { ensureBuilt, ROOT } from '../../support/build.ts'
import { usual as test, variant } from '../../variant.ts'

/** A timer that keeps nothing alive: it fires only where something else does. */
const LATER = 'setTimeout(end, 50).unref()'

const FLOW = `
import { input, linear, openBoard, runConductor, startConductor, task } from 'jobboard'
const nap = task('nap', { execute: (_, { signal }) => new Promise((_, refuse) => {
  console.log('running')
  signal.addEventListener('abort', () => refuse(signal.reason))
}) })
const rest = linear('rest', input(), nap)
const places = { persistence: 'memory:', flows: [rest] }
`

variant('a process that waits for a job that is never done is not ended by Node', async () => {
  const { stdout, exitCode } = await run(`
    const board = await openBoard('memory:')
    const job = await board.post('nobody', {})
    const end = () => { console.log('still there'); process.exit() }
    ${LATER}
    await job.wait()`)
  expect({ stdout, exitCode }).toEqual({ stdout: 'still there\n', exitCode: 0 })
})

test('the limit of the wait is reported with its unit', async () => {
  const { stdout } = await run(`
    const board = await openBoard('memory:')
    const job = await board.post('nobody', {})
    await job.wait({ timeout: 20 }).catch((error) => console.log(error.message))
    console.log(job)`)
  expect(stdout).toMatch(/^job \S+ \(nobody\) is still UNCLAIMED after 20 ms\n/)
  expect(stdout).toMatch(
    /\nJob \{\n {2}uuid: '[\w-]{36}',\n {2}ref: '[\w.-]+',\n {2}name: 'nobody',\n {2}state: 'UNCLAIMED',\n/,
  )
})

test('a conductor keeps its process, and lets go of it when it has stopped', async () => {
  const { stdout, stderr, exitCode } = await run(`
    const conductor = await startConductor({ ...places, board: 'memory:' })
    const end = () => conductor.stop()
    ${LATER}
    await conductor.stopped
    console.log('stopped')`)
  expect({ stdout, stderr, exitCode }).toEqual({ stdout: 'stopped\n', stderr: '', exitCode: 0 })
})

test('runConductor logs by itself, and its signals drain and then abort', async () => {
  const { stdout, stderr, exitCode } = await run(`
    const board = await openBoard('memory:')
    await board.post(rest, {})
    const tell = (signal) => process.kill(process.pid, signal)
    await runConductor({
      ...places,
      board,
      name: 'daemon',
      started: () => setTimeout(tell, 50, 'SIGINT').unref(),
      stopping: ({ state, running }) => {
        console.log(state, running)
        if (state === 'draining') setImmediate(tell, 'SIGTERM')
      },
    })`)
  expect({ stdout, exitCode }).toEqual({ stdout: 'running\ndraining 1\naborting 1\n', exitCode: 0 })
  const logged = stderr
    .trim()
    .split('\n')
    .map((line): { msg: string; name: string } => JSON.parse(line))
  expect(logged.map(({ msg }) => msg)).toEqual([
    'conductor started',
    'conductor draining',
    'conductor aborting',
    'job abandoned',
    'conductor stopped',
  ])
})

test('SIGUSR2 pauses runConductor, and has it go on', async () => {
  const { stdout, stderr, exitCode } = await run(`
    const board = await openBoard('memory:')
    const quick = linear('quick', input(), task('quick', { execute: () => console.log('ran') }))
    const seen = (conductor, state) => new Promise((resolve) => {
      const look = () => conductor.state === state ? resolve() : setImmediate(look)
      process.kill(process.pid, 'SIGUSR2')
      look()
    })
    await runConductor({
      ...places,
      flows: [quick],
      board,
      started: async (conductor) => {
        await seen(conductor, 'paused')
        const job = await board.post(quick, {})
        const early = await job.wait({ timeout: 50 }).catch(() => job.state)
        console.log(early, conductor.state)
        await seen(conductor, 'idle')
        console.log(await job.wait())
        conductor.stop()
      },
    })`)
  expect({ stdout, exitCode }).toEqual({ stdout: 'UNCLAIMED paused\nran\nCOMPLETE\n', exitCode: 0 })
  expect(stderr).toContain('"SIGUSR2: the conductor is paused"')
})

test('SIGUSR2 that comes before the conductor has started pauses it then', async () => {
  const { stdout, exitCode } = await run(`
    const running = runConductor({
      ...places,
      board: 'memory:',
      started: (conductor) => {
        console.log(conductor.state)
        conductor.stop()
      },
    })
    process.emit('SIGUSR2')
    await running`)
  expect({ stdout, exitCode }).toEqual({ stdout: 'paused\n', exitCode: 0 })
})

variant('a misspelt option of runConductor is refused', async () => {
  const { stdout } = await run(`
    await runConductor({ ...places, board: 'memory:', drainTimout: '1s' }).catch((error) => console.log(error.message))`)
  expect(stdout).toBe('runConductor has no option "drainTimout"; did you mean drainTimeout?\n')
})

async function run(code: string): Promise<{ stdout: string; stderr: string; exitCode: number | null }> {
  await ensureBuilt()
  // Inside the package, so that its own name resolves.
  const folder = await mkdtemp(join(ROOT, '.test-conductor-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'program.mjs'), `${FLOW}${code}`)
  const child = spawn(process.execPath, ['program.mjs'], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ])
  return { stdout, stderr, exitCode }
}
