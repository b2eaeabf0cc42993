/** Isolated tasks on the command line: `run --isolate`, `conductor`, and `pool:` of the config file. */
import { afterAll, afterEach, beforeEach, describe, expect } from 'vitest'
import { openBoard } from '../../src/index.ts'
import { usual as test, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining } from './workplace.ts'

const FLOWS = `
import { input, linear, task } from 'jobboard'
const pid = task('pid', { provides: 'pid', execute: async () => { console.log('computing'); return process.pid } })
const here = task('here', { provides: 'here', isolate: false, execute: async () => process.pid })
const there = task('there', { provides: 'there', isolate: true, execute: async () => process.pid })
const crash = task('crash', { isolate: true, execute: async () => process.abort() })
export const plain = linear('plain', input(), pid, here)
export const isolated = linear('isolated', input(), there, here)
export const crashing = linear('crashing', input(), crash)
`

const firstLine = (stdout: string) => (jsonLines(stdout)[0] ?? {}) as Record<string, unknown>
const pidsOf = (stdout: string) => firstLine(stdout)['results'] as Record<string, number>

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder({ tsx: true })
  await place.write('flows.mjs', FLOWS)
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

describe('run', () => {
  test('runs every task in a child process with --isolate, unless it says otherwise', async () => {
    const args = ['run', 'plain', '--flows', 'flows.mjs', '--json', '--quiet']
    const plain = await place.spawned(args)
    expect(plain.stdout).toMatch(/^computing\n/)
    const { exitCode, stdout, stderr } = await place.spawned([...args, '--isolate', '--pool-max', '1'])
    // Its standard output is that of the command: what a child prints is for people.
    expect([exitCode, stderr]).toEqual([0, 'computing\n'])
    const { pid, here } = pidsOf(stdout)
    expect(pid).toBeGreaterThan(0)
    expect(pid).not.toBe(here)
  })

  variant('needs no option for tasks that are isolated', async () => {
    const { stdout } = await place.bare(['run', 'isolated', '--flows', 'flows.mjs', '--json', '--quiet'])
    const { there, here } = pidsOf(stdout)
    expect(here).toBe(process.pid)
    expect(there).not.toBe(here)
  })

  variant('runs TypeScript in a child process', async () => {
    await place.write('flows.ts', FLOWS.replace('async () => process.pid', 'async (): Promise<number> => process.pid'))
    const { exitCode, stdout } = await place.spawned(['run', 'isolated', '--flows', 'flows.ts', '--json', '--quiet'])
    expect(exitCode).toBe(0)
    const { there, here } = pidsOf(stdout)
    expect(there).not.toBe(here)
  })

  variant('says that a child has crashed', async () => {
    const { exitCode, stderr } = await place.bare(['run', 'crashing', '--flows', 'flows.mjs', '--quiet'])
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(
      /jobboard: flow crashing failed: ChildDied: child 1 .* was killed by SIGABRT while it worked/,
    )
  })

  test.each([
    ['zero', '--pool-max must be a whole number from 1'],
    ['0', '--pool-max must be a whole number from 1, got 0'],
  ])('refuses --pool-max %s', async (number, message) => {
    const { exitCode, stderr } = await place.bare(['run', 'plain', '--flows', 'flows.mjs', '--pool-max', number])
    expect([exitCode, stderr]).toEqual([2, `jobboard: ${message}\n`])
  })
})

describe('conductor', () => {
  variant('starts children for isolated tasks, as the config file says', async () => {
    await place.write('jobboard.yaml', 'flows: ./flows.mjs\npool: { min: 2, max: 3, memory: 1GB, grace: 1s }\n')
    await using board = await openBoard(place.board)
    const jobs = await Promise.all([1, 2].map((n) => board.post('isolated', {}, { name: `job ${n}` })))
    const running = place.start(['conductor', '--max-jobs', '3'])
    for (const job of jobs) expect(await job.wait()).toBe('COMPLETE')
    const { stdout } = await place.jobboard(['conductors', '--json'])
    expect(firstLine(stdout)['children']).toHaveLength(2)
    const crashing = await board.post('crashing', {}, { maxAttempts: 1 })
    expect(await crashing.wait()).toBe('TRASHED')
    expect((await running.ended).exitCode).toBe(0)
  })

  variant('starts none where nothing is isolated', async () => {
    await place.write('plain.mjs', FLOWS.replaceAll('isolate: true', 'isolate: false'))
    const running = place.start(['conductor', '--flows', 'plain.mjs', '--max-jobs', '1', '--name', 'plain'])
    await running.says('conductor plain runs')
    const { stdout } = await place.jobboard(['conductors', '--json'])
    expect(firstLine(stdout)['children']).toBeUndefined()
    await using board = await openBoard(place.board)
    await board.post('plain', {})
    expect((await running.ended).exitCode).toBe(0)
  })

  variant('ends with one line when its children cannot start', async () => {
    await place.write(
      'needy.mjs',
      `if (process.argv[1]?.includes('child-main')) throw new Error('no licence')\n${FLOWS}`,
    )
    const { exitCode, stdout, stderr } = await place.spawned(['conductor', '--flows', 'needy.mjs', '--burst'])
    expect([exitCode, stdout]).toEqual([1, ''])
    expect(stderr.split('\n').filter((line) => line.startsWith('jobboard: '))).toEqual([
      expect.stringMatching(/^jobboard: no child can be started: .*no licence/),
    ])
  })
})

describe('pool: of the config file', () => {
  test.each([
    ['max: 0', '3:3: pool.max must be a whole number from 1'],
    ['mx: 1', '3:3: unknown key mx; did you mean max?'],
    ['memory: lots', "3:3: pool.memory must be a size of at least 1KB, such as '512MB' or '2GB', got lots"],
    ['grace: soon', '3:3: pool.grace: "soon" is not a duration'],
    ['isolate: some', '3:3: pool.isolate must be one of declared, all'],
    [`memory: \${MEMORY}`, '3:3: the variable MEMORY is not set'],
  ])('%s is refused with its place', async (line, message) => {
    await place.write('jobboard.yaml', `flows: ./flows.mjs\npool:\n  ${line}\n`)
    const { exitCode, stderr } = await place.bare(['run', 'plain'])
    expect(exitCode).toBe(2)
    expect(stderr).toContain(message)
  })

  variant('is overridden by options, and substitutes variables', async () => {
    await place.write('jobboard.yaml', `flows: ./flows.mjs\npool: { min: 4, memory: "\${MEMORY}", isolate: all }\n`)
    const args = ['run', 'plain', '--json', '--quiet', '--pool-max', '1']
    const { stdout, stderr } = await place.spawned(args, { env: { MEMORY: '1GB' } })
    const { pid, here } = pidsOf(stdout)
    expect(stderr).toBe('computing\n')
    expect(pid).not.toBe(here)
  })
})
