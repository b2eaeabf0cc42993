/** What `jobboard.yaml` says beside options, in a daemon: limits, schedules, tenants, defaults of flows, hooks; and SIGHUP. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect } from 'vitest'
import { type JobBoard, openBoard } from '../../src/index.ts'
import { usual as test, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, killRemaining, type Running } from './workplace.ts'

const FLOWS = `
import { input, linear, task } from 'jobboard'

export const hello = linear({ name: 'hello', posting: { maxAttempts: 2 } }, input(), task('greet', { execute: async () => undefined }))
export const isolated = linear('isolated', input(), task('alone', { isolate: true, execute: async () => undefined }))
`

/** A flow that runs until it is aborted. */
const SLOW = `
import { input, linear, task } from 'jobboard'

export const slow = linear('slow', input(), task('nap', { execute: (_, { signal }) => new Promise((_, reject) => {
  console.log('running')
  signal.addEventListener('abort', () => reject(signal.reason))
}) }))
`

/** A flow whose module is loaded when something is written to the standard input. */
const LATE = `
import { input, linear, task } from 'jobboard'

console.log('loading')
await new Promise((resolve) => process.stdin.once('data', resolve))
export const late = linear('late', input(), task('nothing', { execute: () => undefined }))
`

let place: CliFolder
let board: JobBoard

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.mjs', FLOWS)
  board = await openBoard(place.board)
})
afterEach(async () => {
  await board.close()
  await place[Symbol.asyncDispose]()
})
afterAll(killRemaining)

const config = (text: string) => place.write('jobboard.yaml', `flows: ./flows.mjs\n${text}`)

/** Starts a daemon; resolves when it claims jobs. */
async function startDaemon(args: readonly string[] = []): Promise<Running> {
  const running = place.start(['conductor', ...args])
  await running.says('Ctrl-C stops it')
  return running
}

async function stop({ process, ended }: Running): Promise<string> {
  process.kill('SIGTERM')
  const { exitCode, stderr } = await ended
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
  return stderr
}

const limits = async () =>
  Object.fromEntries((await board.limits.list()).map(({ key, concurrency, rate }) => [key, concurrency ?? rate?.limit]))
const schedules = async () => (await board.schedules.list()).map(({ id }) => id)

variant(
  'a daemon declares limits, and schedules for tenants; what is not in the file any more is removed',
  async () => {
    const tenants = 'tenants:\n  acme: { limit: { concurrency: 2 }, store: { name: Acme } }\n  zeta:\n'
    const hourly = 'schedules:\n  hourly: { flow: hello, every: 1h, tenants: all, store: { name: Ada, n: 1 } }\n'
    await config(
      `owner: billing\nlimits:\n  api: { rate: 10/1m }\n${tenants}${hourly}  daily: { flow: hello, cron: '0 6 * * *' }\n`,
    )
    await stop(await startDaemon())
    expect(await limits()).toEqual({ api: 10, 'tenant/acme': 2 })
    expect((await schedules()).sort()).toEqual(['daily', 'hourly/acme', 'hourly/zeta'])
    const stores = (await board.schedules.list()).map(({ tenant, store }) => [tenant, store])
    expect(stores).toContainEqual(['acme', { name: 'Acme', n: 1 }])
    expect(stores).toContainEqual(['zeta', { name: 'Ada', n: 1 }])
    await config('owner: billing\nlimits:\n  api: { rate: 10/1m }\n')
    await stop(await startDaemon())
    expect(await limits()).toEqual({ api: 10 })
    expect(await schedules()).toEqual([])
  },
)

test('modules of flows export schedules and limits; the file replaces and changes them by name', async () => {
  await place.write(
    'flows.mjs',
    `${FLOWS}
import { schedule } from 'jobboard'
export const schedules = [
  schedule('hourly', { every: '1h' }, hello, { name: 'Ada', n: 1 }),
  schedule('daily', { cron: '0 6 * * *' }, hello, {}),
  schedule('nightly', { cron: '0 2 * * *' }, hello, {}),
  schedule('weekly', { cron: '0 3 * * 1' }, hello, {}, { enabled: false }),
]
export const limits = { 'flow/hello': { concurrency: 5 }, api: { concurrency: 1 } }
`,
  )
  const found = async () =>
    Object.fromEntries(
      (await board.schedules.list()).map(({ id, state, flow, store, spec }) => {
        const { every, cron } = Object(spec)
        return [id, { state, flow, store, rule: every ?? cron }]
      }),
    )
  await stop(await startDaemon(['--flows', 'flows.mjs']))
  expect(await limits()).toEqual({ 'flow/hello': 5, api: 1 })
  const common = { flow: 'hello', store: {} }
  expect(await found()).toEqual({
    hourly: { ...common, state: 'active', store: { name: 'Ada', n: 1 }, rule: '1h' },
    daily: { ...common, state: 'active', rule: '0 6 * * *' },
    nightly: { ...common, state: 'active', rule: '0 2 * * *' },
    weekly: { ...common, state: 'paused', rule: '0 3 * * 1' },
  })
  await config(`
limits: { api: { concurrency: 3 } }
flow-defaults: { hello: { maxAttempts: 7 } }
schedules:
  hourly: { every: 2h, store: { n: 2 } }
  daily: { enabled: false }
  nightly: { flow: isolated, every: 1d }
  weekly: { enabled: true }
`)
  expect((await place.jobboard(['config', 'check'])).exitCode).toBe(0)
  await stop(await startDaemon())
  expect(await limits()).toEqual({ 'flow/hello': 5, api: 3 })
  expect(await found()).toEqual({
    hourly: { ...common, state: 'active', store: { name: 'Ada', n: 2 }, rule: '2h' },
    daily: { ...common, state: 'paused', rule: '0 6 * * *' },
    nightly: { ...common, state: 'active', flow: 'isolated', rule: '1d' },
    weekly: { ...common, state: 'active', rule: '0 3 * * 1' },
  })
  expect((await board.find(await board.schedules.trigger('weekly'))).maxAttempts).toBe(7)
  await config('schedules: { hurly: { enabled: false } }\n')
  for (const args of [['config', 'check'], ['conductor']])
    expect((await place.jobboard(args)).stderr).toMatch(/hurly.*; give it a flow, or export it; did you mean hourly\?/)
})

variant('what an operator has set stays until the file changes', async () => {
  await config('limits:\n  api: { concurrency: 1 }\n')
  await stop(await startDaemon())
  await place.jobboard(['limits', 'set', 'api', '--concurrency', '7'])
  expect(await stop(await startDaemon())).toContain('these limits were set at run time')
  expect(await limits()).toEqual({ api: 7 })
  await config('limits:\n  api: { concurrency: 2 }\n')
  await stop(await startDaemon())
  expect(await limits()).toEqual({ api: 2 })
})

variant('an operator was there before: the file does not replace what he has set, until it changes', async () => {
  await board.limits.set('api', { concurrency: 7 })
  await config('limits:\n  api: { concurrency: 1 }\n')
  expect(await stop(await startDaemon())).toContain('these limits were set at run time')
  expect(await limits()).toEqual({ api: 7 })
  await config('limits:\n  api: { concurrency: 2 }\n')
  await stop(await startDaemon())
  expect(await limits()).toEqual({ api: 2 })
})

test('defaults of flows hold for what is posted with the command line, with and without the code of the flow', async () => {
  await place.write(
    'jobboard.yaml',
    'flow-defaults:\n  hello: { maxAttempts: 9, limits: [api], priority: HIGH, resources: { shared: [disk] } }\n',
  )
  const posted = async (args: readonly string[]) => {
    const { stdout, stderr } = await place.jobboard(['post', 'hello', ...args])
    expect(stderr).toBe('')
    return board.find(stdout.trim())
  }
  const expected = { maxAttempts: 9, priority: 'HIGH', resources: { shared: ['disk'] } }
  expect(await posted(['--flows', './flows.mjs'])).toMatchObject(expected)
  expect(await posted([])).toMatchObject(expected)
  expect(await posted(['--max-attempts', '3', '--priority', 'LOW'])).toMatchObject({ maxAttempts: 3, priority: 'LOW' })
})

variant(
  'defaults of flows do not keep isolated tasks from running: their children load the code as it is',
  async () => {
    await config('flow-defaults:\n  isolated: { maxAttempts: 1, deadline: 30s }\n')
    const job = await board.post('isolated', {})
    const { exitCode, stderr } = await place.spawned(['conductor', '--burst'])
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
    expect(await job.wait({ timeout: '10s' })).toBe('COMPLETE')
  },
)

variant('modules of hooks run beside those of flows', async () => {
  await place.write('hooks.mjs', `export const hooks = { settled: ({ job }) => console.log('settled ' + job.name) }\n`)
  await place.write('jobboard.yaml', 'flows: ./flows.mjs\nhooks: ./hooks.mjs\n')
  await board.post('hello', {}, { name: 'one' })
  expect(await place.spawned(['conductor', '--burst'])).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('settled one'),
  })
  await place.write('hooks.mjs', 'export const hook = 1\n')
  expect(await place.spawned(['conductor', '--burst'])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('exports neither hooks nor onError'),
  })
})

variant('a deployment is chosen by its name', async () => {
  await config(
    'limits:\n  api: { concurrency: 1 }\ndeployments:\n  staging:\n    limits: { api: { concurrency: 5 } }\n',
  )
  await stop(await startDaemon(['--deployment', 'staging']))
  expect(await limits()).toEqual({ api: 5 })
  const { exitCode, stderr } = await place.jobboard(['conductor', '--burst', '--deployment', 'stagin'])
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: 'jobboard: there is no deployment "stagin" in jobboard.yaml; did you mean staging?\n',
  })
})

variant('several boards: limits are set on each, schedules are put on the first', async () => {
  const boards = [`${place.board}/a`, `${place.board}/b`]
  await config(`limits:\n  api: { concurrency: 3 }\nschedules:\n  hourly: { flow: hello, every: 1h }\n`)
  await stop(await startDaemon(boards.flatMap((uri) => ['--board', uri])))
  const found: unknown[] = []
  for (const uri of boards) {
    await using each = await openBoard(uri)
    found.push([(await each.limits.list()).map(({ key }) => key), (await each.schedules.list()).map(({ id }) => id)])
  }
  expect(found).toEqual([
    [['api'], ['hourly']],
    [['api'], []],
  ])
})

describe('SIGHUP', () => {
  async function hangUp(running: Running, words: string): Promise<Record<string, unknown>> {
    const logged = running.logs(words)
    running.process.kill('SIGHUP')
    return logged
  }

  test('applies limits, schedules, concurrency and the level of the log, and says what needs a restart', async () => {
    await config('limits:\n  api: { concurrency: 1 }\nconductor: { concurrency: 1 }\n')
    const running = await startDaemon()
    await config(
      'limits:\n  api: { concurrency: 4 }\nschedules:\n  hourly: { flow: hello, every: 1h }\nconductor: { concurrency: 6, logLevel: debug, name: other, drainTimeout: 1s }\n',
    )
    const restart = running.logs('need a restart')
    const { applied } = await hangUp(running, 'was read again')
    expect([...(applied as string[])].sort()).toEqual([
      'conductor.concurrency',
      'conductor.logLevel',
      'limits.api.concurrency',
      'schedules.hourly.every',
      'schedules.hourly.flow',
    ])
    expect((await restart)['keys']).toEqual(['conductor.name', 'conductor.drainTimeout'])
    expect(await limits()).toEqual({ api: 4 })
    expect(await schedules()).toEqual(['hourly'])
    await expect
      .poll(() => board.entities('conductor'), { timeout: 20_000 })
      .toMatchObject([{ metadata: { concurrency: 6 } }])
    expect(await stop(running)).toContain('"level":20')
  })

  variant('a file with mistakes changes nothing, and the next one without is applied', async () => {
    await config('limits:\n  api: { concurrency: 1 }\n')
    const running = await startDaemon()
    await config('limits:\n  api: { concurrency: 4 }\n  two: { concurrency: -1 }\n')
    expect((await hangUp(running, 'nothing was changed'))['msg']).toContain(
      'jobboard.yaml:4:10: limits.two.concurrency must be',
    )
    expect(await limits()).toEqual({ api: 1 })
    await config('limits:\n  api: { concurrency: 5 }\n')
    await hangUp(running, 'was read again')
    expect(await limits()).toEqual({ api: 5 })
    await stop(running)
  })

  variant('what was typed stays', async () => {
    await config('conductor: { concurrency: 1 }\n')
    const running = await startDaemon(['--concurrency', '3'])
    await config('conductor: { concurrency: 9 }\n')
    await hangUp(running, 'was read again')
    expect((await board.entities('conductor'))[0]).toMatchObject({ metadata: { concurrency: 3 } })
    await stop(running)
  })

  variant('a file that is gone changes nothing, although there is one in a folder above', async () => {
    await place.write('jobboard.yaml', 'limits:\n  other: { concurrency: 9 }\n')
    await place.write('inner/jobboard.yaml', 'flows: ../flows.mjs\nlimits:\n  api: { concurrency: 1 }\n')
    const running = place.start(['conductor'], { folder: 'inner' })
    await running.says('Ctrl-C stops it')
    await rm(join(place.cwd, 'inner/jobboard.yaml'))
    await hangUp(running, 'there is no config file any more, and nothing was changed')
    expect(await limits()).toEqual({ api: 1 })
    await stop(running)
  })

  variant('what comes before the start is made up for', async () => {
    await place.write('late.mjs', LATE)
    await config('limits:\n  api: { concurrency: 1 }\n')
    const running = place.start(['conductor', '--flows', './late.mjs'])
    await running.says('loading')
    await config('limits:\n  api: { concurrency: 4 }\n')
    running.process.kill('SIGHUP')
    const read = running.logs('was read again')
    running.process.stdin.write('go on')
    expect(await read).toMatchObject({ applied: ['limits.api.concurrency'] })
    expect(await limits()).toEqual({ api: 4 })
    await stop(running)
  })

  variant('what comes while it stops changes nothing, and is no error', async () => {
    await config('conductor: { concurrency: 1 }\n')
    await board.post('slow', {})
    await place.write('slow.mjs', SLOW)
    const running = place.start(['conductor', '--flows', './slow.mjs'])
    await running.says('running')
    await config('limits:\n  api: { concurrency: 4 }\n')
    const draining = running.logs('conductor draining')
    running.process.kill('SIGTERM')
    await draining
    expect(await hangUp(running, 'nothing is reloaded')).toMatchObject({ level: 30, state: 'draining' })
    running.process.kill('SIGINT')
    expect(await running.ended).toMatchObject({ exitCode: 0 })
    expect(await limits()).toEqual({})
  })
})
