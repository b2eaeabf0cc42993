/** `jobboard demo`: a job changes hands, nothing of it is done twice but what was stopped in the middle, nothing is left. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import type { DemoEvent } from '../../../src/cli/dev/demo/play.ts'
import type { DemoSummary } from '../../../src/cli/dev/demo/summary.ts'
import { type RedisServer, startRedis } from '../../support/redis.ts'
import { usual as test, testRows, variant } from '../../variant.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining } from '../workplace.ts'

const TASKS = ['fetch', 'resize', 'pack']

let place: CliFolder
/** No board is named, and what is made for a while is made where it would be seen. */
let env: Record<string, string>

beforeEach(async () => {
  place = await createCliFolder()
  env = { JOBBOARD_BOARD: '', JOBBOARD_PERSISTENCE: '', TMPDIR: place.cwd }
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

/** Folders and processes of a demo: the environment of all of them names the place. */
async function leftOvers(): Promise<string[]> {
  const folders = (await readdir(place.cwd)).filter((name) => name.startsWith('jobboard-'))
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const environments = await Promise.all(
    pids.map((pid) => readFile(join('/proc', pid, 'environ'), 'utf8').catch(() => '')),
  )
  return [...folders, ...pids.filter((_, index) => environments[index]?.includes(`TMPDIR=${place.cwd}\0`))]
}

function isSummary(value: unknown): value is DemoSummary {
  return (value as { event?: unknown }).event === 'summary'
}

testRows<[string, string[], RegExp]>(
  [
    ['in a file', ['demo', '--json'], /^sqlite:/],
    ['on a ZooKeeper', ['demo', '--zookeeper', '--json'], /^zookeeper:/],
  ],
  ([where]) => where === 'in a file',
)('%s one conductor is killed, the other goes on where it stopped', async (_, command, board) => {
  const { exitCode, stdout, stderr } = await place.spawned(command, { env })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const said = jsonLines(stdout)
  const events = said.filter((value) => !isSummary(value)) as DemoEvent[]
  expect(events[0]).toMatchObject({ event: 'board', board: expect.stringMatching(board) })
  const posted = events.flatMap((event) => (event.event === 'posted' ? event.jobs : []))
  const complete = events.flatMap((event) => (event.event === 'complete' ? event.job : []))
  expect(complete.sort()).toEqual(posted.map(({ job }) => job).sort())

  const killed = events.find((event) => event.event === 'killed')
  expect(killed).toMatchObject({ conductor: 'one', task: 'resize', run: 1 })
  const job = killed?.job ?? ''
  expect(events.find((event) => event.event === 'takenOver')).toMatchObject({
    ...{ conductor: 'two', from: 'one', job, task: 'resize', run: 2 },
  })
  const begun = events.flatMap((event) => (event.event === 'begun' ? [event] : []))
  for (const photo of posted) {
    const tasks = begun.filter((event) => event.job === photo.job).map(({ task }) => task)
    expect(tasks).toEqual(photo.job === job ? ['fetch', 'resize', 'resize', 'pack'] : TASKS)
  }
  const uuid = posted.find((photo) => photo.job === job)?.uuid
  expect(said.find(isSummary)).toMatchObject({
    ...{ jobs: 6, complete: 6 },
    takenOver: { uuid, job, from: 'one', by: 'two', kept: ['fetch'], again: ['resize'] },
  })
  expect(await leftOvers()).toEqual([])
})

describe('nothing is left', () => {
  testRows(
    [
      ['SIGINT', 'posted 6 jobs', ['demo']],
      ['SIGTERM', 'killed by SIGKILL', ['demo']],
      ['SIGINT', 'a ZooKeeper from', ['demo', '--zookeeper']],
    ] as const,
    ([, words]) => words === 'posted 6 jobs',
  )('by %s after %j', async (signal, words, command) => {
    const running = place.start([...command], { env })
    await running.says(words)
    expect((await leftOvers()).length).toBeGreaterThan(1)
    running.process.kill(signal)
    const { exitCode, stderr } = await running.ended
    expect({ exitCode, stderr }).toEqual({
      exitCode: 130,
      stderr: 'jobboard: interrupted: the jobs and files of the demo are removed\n',
    })
    expect(await leftOvers()).toEqual([])
  })

  test('by SIGKILL', async () => {
    const running = place.start(['demo'], { env })
    await running.says('posted 6 jobs')
    running.process.kill('SIGKILL')
    await running.ended
    await expect.poll(leftOvers, { timeout: 10_000 }).toEqual([])
  })

  variant('where its reader goes away', async () => {
    const running = place.start(['demo'], { env })
    await running.says('an SQLite file')
    running.process.stdout.destroy()
    expect((await running.ended).exitCode).toBe(0)
    expect(await leftOvers()).toEqual([])
  })
})

test('where no ZooKeeper can be had it says what to install', async () => {
  const nothing = await place.bare(['demo', '--zookeeper'], { env: { PATH: place.cwd } })
  expect(nothing).toMatchObject({ exitCode: 2, stdout: '' })
  expect(nothing.stderr).toMatch(
    /^jobboard: nothing on this machine can run ZooKeeper: apt-get install .*, or start Docker\n$/,
  )
  expect(await place.bare(['demo', '--board', 'memory:'])).toMatchObject({ exitCode: 2, stdout: '' })
})

describe('on a board that is named', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  variant('what it did can be looked at afterwards', async () => {
    const board = `${server.uri}/0?prefix=kept`
    const named = { PATH: process.env['PATH'] ?? '', NO_COLOR: '1', JOBBOARD_PERSISTENCE: place.persistence }
    // The user's config file is for the user's conductors.
    await place.write('jobboard.yaml', 'conductor:\n  size: [large]\n')
    const { exitCode, stdout, stderr } = await place.bare(['demo', '--board', board], { env: named, columns: 50 })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(/\d\.\d\ds {2}one +photo-\d +killed by SIGKILL in t.*…\n/)
    const [timeline = '', , commands = ''] = stdout.split('\n\n')
    expect(timeline.split('\n').filter((line) => line.length > 50)).toEqual([])
    const [, show = '', list = ''] = commands.split('\n  jobboard ')
    const typed = (line: string) => place.bare(line.trim().replaceAll("'", '').split(' '))
    const shown = await typed(show)
    expect(shown.stdout).toMatch(/^ {2}run +2$/m)
    expect(shown.stdout).toMatch(/logbook \S+ {2}photo-\d {2}SUCCESS/)
    expect((await typed(list)).stdout.match(/ SUCCESS /g)).toHaveLength(6)
    expect((await place.bare(['jobs', '--board', board])).stdout).toBe(`no jobs on ${board}\n`)
  })

  variant('Ctrl-C takes its jobs away, also the one whose owner is dead', async () => {
    const board = `${server.uri}/0?prefix=interrupted`
    const running = place.start(['demo', '--board', board], { env })
    await running.says('killed by SIGKILL')
    running.process.kill('SIGINT')
    expect((await running.ended).exitCode).toBe(130)
    expect((await place.bare(['jobs', '--board', board])).stdout).toBe(`no jobs on ${board}\n`)
    expect((await place.bare(['trash', 'list', '--board', board])).stdout).toBe(`nothing in the trash of ${board}\n`)
    expect(await leftOvers()).toEqual([])
  })
})
