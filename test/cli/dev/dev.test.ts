/** `jobboard dev`: a server that is there while the command runs, and nothing of it afterwards. */
import { chmod, mkdir, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { afterAll, afterEach, beforeEach, expect } from 'vitest'
import { openBoard } from '../../../src/index.ts'
import { usual as test, testRows } from '../../variant.ts'
import { type CliFolder, createCliFolder, killRemaining } from '../workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

/** Returns the folders of throw-away boards, without those that were there before, of other programs. */
async function leftOvers(before: readonly string[] = []): Promise<string[]> {
  const folders = (await readdir(tmpdir())).filter((name) => name.startsWith('jobboard-dev-'))
  return folders.filter((name) => !before.includes(name))
}

test('a ZooKeeper serves until SIGTERM, or until it is killed', async () => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const before = await leftOvers()
    const running = place.start(['dev', '--zookeeper'])
    await running.says('export JOBBOARD_PERSISTENCE=')
    expect((await leftOvers(before)).length).toBeGreaterThan(0)
    const uri = await said(running)
    {
      await using board = await openBoard(uri)
      await board.post('hello', {})
      expect(await board.countJobs()).toBe(1)
    }
    running.process.kill(signal)
    const { exitCode, stderr } = await running.ended
    expect([exitCode, stderr]).toEqual([signal === 'SIGTERM' ? 0 : null, ''])
    await expect.poll(() => leftOvers(before), { timeout: 10_000 }).toEqual([])
    await expect(openBoard(`${uri}?sessionTimeout=1s`)).rejects.toThrow('ECONNREFUSED')
  }
})

/** What the line says that is to be pasted. */
async function said(running: ReturnType<CliFolder['start']>): Promise<string> {
  const lines: string[] = running.heard().split('\n')
  return lines.find((line) => line.startsWith('export JOBBOARD_BOARD='))?.slice('export JOBBOARD_BOARD='.length) ?? ''
}

const FLOWS = (name: string) => `
import { input, linear, task } from 'jobboard'
export const flow = linear('${name}', input(), task('say', { execute: async () => console.log('said by ${name}') }))
`

testRows<[string, string[]]>(
  [
    ['a file', []],
    ['a ZooKeeper', ['--zookeeper', '--ui']],
  ],
  ([where]) => where === 'a file',
)(
  'on %s there are a dashboard, and a conductor that is started anew when its flows change',
  async (_, options) => {
    const before = await leftOvers()
    await place.write('flows.js', FLOWS('first'))
    const running = place.start(['dev', '--flows', 'flows.js', '--json', ...options])
    await running.says('"ui"')
    const { ui } = JSON.parse(running.heard()) as { ui: string }
    const ask = async (path: string, init?: RequestInit) => {
      const answer = await fetch(`${ui}api/v1/boards/demo/${path}`, init)
      return (await answer.json()) as Record<string, { name?: string; flows?: string[]; state?: string }[]>
    }
    const known = async () => (await ask('conductors'))['conductors']?.flatMap(({ flows = [] }) => flows)
    await expect.poll(known, { timeout: 60_000, interval: 200 }).toEqual(['first'])
    const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
    await ask('jobs', { method: 'POST', headers, body: '{"flow":"second"}' })
    await place.write('flows.js', FLOWS('second'))
    await expect.poll(known, { timeout: 60_000, interval: 200 }).toEqual(['second'])
    await place.write('written-by-a-flow.png', 'not code')
    const done = async () => (await ask('jobs?q=state:done'))['jobs']?.length
    await expect.poll(done, { timeout: 60_000, interval: 200 }).toBe(1)
    running.process.kill('SIGTERM')
    const { exitCode, stderr } = await running.ended
    expect(exitCode).toBe(0)
    expect(stderr).toContain('said by second')
    expect(stderr.match(/# .* has changed: .*/g)).toEqual(['# flows.js has changed: the conductor is started anew'])
    await expect.poll(() => leftOvers(before), { timeout: 10_000 }).toEqual([])
  },
  200_000,
)

test('the file is kept between starts, and --fresh begins anew', async () => {
  const post = async (options: readonly string[]) => {
    const running = place.start(['dev', ...options])
    await running.says('export JOBBOARD_PERSISTENCE=')
    await using board = await openBoard(await said(running))
    await board.post('hello', {})
    const jobs = await board.countJobs()
    const second = await place.bare(['dev', '--fresh'])
    expect(second).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--fresh: another process uses') })
    running.process.kill('SIGTERM')
    expect((await running.ended).exitCode).toBe(0)
    return jobs
  }
  expect([await post([]), await post([]), await post(['--fresh'])]).toEqual([1, 2, 1])
  expect(await readFile(`${place.cwd}/.jobboard/.gitignore`, 'utf8')).toBe('*\n')
})

test.each([
  [['--zookeeper', '--flows', 'flows.js'], 'add --ui'],
  [['--zookeeper', '--fresh'], 'give it without --zookeeper'],
])('dev %j is refused', async (options, message) => {
  const outcome = await place.bare(['dev', ...options])
  expect(outcome).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(message) })
})

test('where nothing is installed it says what to install', async () => {
  const nothing = await place.bare(['dev', '--zookeeper'], { env: { PATH: place.cwd } })
  expect(nothing).toMatchObject({ exitCode: 2, stdout: '' })
  expect(nothing.stderr).toMatch(
    /^jobboard: nothing on this machine can run ZooKeeper: apt-get install .*, or start Docker\n$/,
  )
})

/** Takes the place of the client, and writes down how it was called. */
const DOCKER = `#!/bin/sh
[ "$1" = info ] && exit "$ENGINE"
echo "$@" >> calls
[ "$1" = run ] && { echo 'no such image'; exit 1; }
exit 0
`

test('in Docker, for this machine only, and removed at the end', async () => {
  await mkdir(`${place.cwd}/bin`)
  await place.write('bin/docker', DOCKER)
  await chmod(`${place.cwd}/bin/docker`, 0o755)
  const env = { PATH: `${place.cwd}/bin:/usr/bin:/bin`, ENGINE: '0' }
  const outcome = await place.spawned(['dev', '--with', 'docker'], { env })
  expect(outcome).toMatchObject({ exitCode: 1, stdout: '' })
  expect(outcome.stderr).toMatch(/^jobboard: ZooKeeper did not start on port \d+: no such image\n$/)
  const calls = await readFile(`${place.cwd}/calls`, 'utf8')
  expect(calls).toMatch(
    /^run --rm --name jobboard-dev-(\d+) --publish 127\.0\.0\.1:\1:\1 --volume \S+\/zoo\.cfg:\S+:ro zookeeper:/,
  )
  expect(calls).toMatch(/\nrm --force jobboard-dev-\d+\n$/)
  // A client without an engine is common.
  const away = await place.spawned(['dev', '--with', 'docker'], { env: { ...env, ENGINE: '1' } })
  expect(away.stderr).toContain('nothing on this machine can run ZooKeeper: start Docker')
})

test('a port that is taken', async () => {
  const port = new URL(place.board).port
  const { exitCode, stderr } = await place.bare(['dev', '--port', port], { env: { PATH: process.env['PATH'] ?? '' } })
  expect([exitCode, stderr]).toEqual([2, `jobboard: --port ${port}: the port is in use; give another, or none\n`])
})

test('where no temporary folder can be made it is said which, and what to do', async () => {
  const outcome = await place.spawned(['dev', '--zookeeper'], { env: { TMPDIR: '/nowhere' } })
  const stderr = 'jobboard: cannot create a folder in /nowhere: ENOENT; set TMPDIR to a writable folder\n'
  expect(outcome).toEqual({ exitCode: 1, stdout: '', stderr })
})
