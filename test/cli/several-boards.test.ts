/** `jobboard conductor` on several boards: `--board` repeated, `--weights`, and a list in jobboard.yaml. */
import { afterAll, afterEach, beforeEach, describe, expect } from 'vitest'
import { toBoards } from '../../src/cli/input/board-flags.ts'
import { resolveSettings } from '../../src/cli/input/config/settings.ts'
import { toConductorBoard } from '../../src/cli/opening.ts'
import { redactUri } from '../../src/core/uri.ts'
import { openBoard } from '../../src/index.ts'
import { freePort } from '../support/ports.ts'
import { createDatabase } from '../support/postgres-database.ts'
import { startRedis } from '../support/redis.ts'
import { usual as test, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, FLOWS, killRemaining } from './workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS)
})
afterEach(() => place[Symbol.asyncDispose]())
afterAll(killRemaining)

/** Posts a job with the command line. */
async function post(board: string, name: string): Promise<string> {
  const args = ['post', 'hello', '--board', board, '--flows', 'flows.js', '--store', '{"name":"Ada"}', '--name', name]
  const { stdout, stderr } = await place.jobboard(args)
  expect(stderr).toBe('')
  return stdout.trim()
}

variant('three boards of three kinds, in one conductor', async () => {
  await using postgres = await createDatabase()
  await using redis = await startRedis()
  const boards = [place.board, `${postgres.uri}?board=cli`, `${redis.uri}/0?prefix=cli`]
  for (const board of boards) for (const n of [1, 2]) await post(board, `${n}`)
  const named = boards.flatMap((board) => ['--board', board])
  const { exitCode, stdout, stderr } = await place.spawned(['conductor', ...named, '--flows', 'flows.js', '--burst'])
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
  expect(stdout).toContain(`runs hello, refused from ${boards.map(redactUri).join(', ')}, logbooks in`)
  const consumed = stderr.split('\n').filter((line) => line.includes('"job consumed"'))
  expect(consumed).toHaveLength(6)
  for (const uri of boards) {
    await using board = await openBoard(uri)
    expect(await board.countJobs()).toBe(0)
  }
})

variant('jobs of the first board come first', async () => {
  const bulk = [await post(`${place.board}/bulk`, 'bulk'), await post(`${place.board}/bulk`, 'bulk')]
  const urgent = [await post(`${place.board}/urgent`, 'urgent')]
  const boards = ['urgent', 'bulk'].flatMap((name) => ['--board', `${place.board}/${name}`])
  const args = ['conductor', ...boards, '--flows', 'flows.js', '--burst', '--concurrency', '1']
  const { exitCode, stderr } = await place.spawned(args)
  expect(exitCode).toBe(0)
  const jobs = stderr.split('\n').flatMap((line) => (line.includes('"job consumed"') ? [JSON.parse(line).job] : []))
  expect(jobs).toEqual([...urgent, ...bulk])
})

variant('--weights divides the claims', async () => {
  for (const name of ['a', 'b']) for (let n = 0; n < 4; n += 1) await post(`${place.board}/${name}`, name)
  const boards = ['a', 'b'].flatMap((name) => ['--board', `${place.board}/${name}`])
  const args = ['conductor', ...boards, '--weights', '1,3', '--flows', 'flows.js', '--burst']
  const { exitCode, stderr } = await place.spawned([...args, '--concurrency', '1'])
  expect(exitCode).toBe(0)
  const order = stderr.split('\n').flatMap((line) => (line.includes('"job consumed"') ? [JSON.parse(line).name] : []))
  expect(order.slice(0, 4).filter((name) => name === 'b')).toHaveLength(3)
})

variant('a board that is away does not stop the others; none at all ends with 1', async () => {
  const away = `redis://127.0.0.1:${await freePort()}/0`
  await post(place.board, 'here')
  const rest = ['--flows', 'flows.js', '--burst']
  const both = await place.spawned(['conductor', '--board', away, '--board', place.board, ...rest])
  expect(both.exitCode).toBe(0)
  expect(both.stderr.match(/a board cannot be reached/g)).toHaveLength(1)
  expect(both.stderr).toContain('"job consumed"')
  const other = `redis://127.0.0.1:${await freePort()}/0`
  const none = await place.spawned(['conductor', '--board', away, '--board', other, '--timeout', '1s', ...rest])
  expect(none.exitCode).toBe(1)
  expect(none.stderr).toMatch(/^jobboard: none of the boards can be reached: .*; .*\n$/m)
})

variant('a stop ends the work on all boards', async () => {
  const boards = ['a', 'b'].flatMap((name) => ['--board', `${place.board}/${name}`])
  const args = ['conductor', ...boards, '--flows', 'flows.js', '--name', 'both']
  const running = place.start(args)
  await running.says('conductor both runs')
  for (const name of ['a', 'b']) {
    const shown = await place.jobboard(['conductors', '--board', `${place.board}/${name}`])
    expect(shown.stdout).toContain('both')
  }
  running.process.kill('SIGTERM')
  expect((await running.ended).exitCode).toBe(0)
  for (const name of ['a', 'b']) {
    const shown = await place.jobboard(['conductors', '--board', `${place.board}/${name}`])
    expect(shown.stdout).not.toContain('both')
  }
})

describe('jobboard.yaml', () => {
  test('board: may be a list of names and URIs', async () => {
    const [a, b] = [`${place.board}/a`, `${place.board}/b`]
    await place.write(
      'jobboard.yaml',
      `boards:\n  first: ${a}\nboard: [first, '${b}']\npersistence: directory:./logbooks\nflows: ./flows.js\n`,
    )
    for (const board of [a, b]) await post(board, 'listed')
    const { exitCode, stderr } = await place.bare(['conductor', '--burst'])
    expect({ exitCode, stderr: stderr.split('\n').filter((line) => line.startsWith('jobboard:')) }).toEqual({
      exitCode: 0,
      stderr: [],
    })
    for (const uri of [a, b]) {
      await using board = await openBoard(uri)
      expect(await board.countJobs()).toBe(0)
    }
    const one = await place.bare(['jobs'])
    expect(one).toMatchObject({ exitCode: 2, stdout: '' })
    expect(one.stderr).toBe(
      'jobboard: the config file names 2 boards, and only jobboard conductor, exporter and ui take several: choose one with --board, as in --board first\n',
    )
    expect(await place.bare(['jobs', '--board', 'first'])).toMatchObject({ exitCode: 0 })
  })

  test('its weights are not for boards that are typed', async () => {
    const names = ['a', 'b', 'c'].map((name) => `${place.board}/${name}`).join(', ')
    await place.write(
      'jobboard.yaml',
      `board: [${names}]\npersistence: directory:./logbooks\nflows: ./flows.js\nconductor: { queues: [x, y], weights: [3, 2, 1], burst: true }\n`,
    )
    const conduct = async (args: readonly string[]) => {
      const { exitCode, stderr } = await place.bare(['conductor', ...args])
      return { exitCode, mistakes: stderr.split('\n').filter((line) => line.startsWith('jobboard:')) }
    }
    const fine = { exitCode: 0, mistakes: [] }
    expect(await conduct([])).toEqual(fine)
    expect(await conduct(['--board', `${place.board}/a`, '--board', `${place.board}/b`])).toEqual(fine)
    expect(await conduct(['--queue', 'a=1,b=2'])).toEqual(fine)
    expect((await conduct(['--weights', '1,2'])).mistakes[0]).toContain('3 in place of 2')
  })
})

describe('credentials', () => {
  /** Returns the options with which a conductor opens its boards, as jobboard.yaml and the environment say. */
  async function opened(yaml: string, env: Readonly<Record<string, string>>, options: object = {}) {
    await place.write('jobboard.yaml', yaml)
    const settled = await resolveSettings(options, { cwd: place.cwd, env })
    const { chosenByFile, boards = [] } = settled
    const inside = { env: settled.env, chosenByFile }
    return toBoards({ boards }, inside).map((each) =>
      toConductorBoard(each, { context: inside, persistence: undefined }),
    )
  }
  const digest = (auth: string) => ({ auth: [{ scheme: 'digest', auth }] })
  const yaml = (list: string) =>
    `boards:\n  a: { uri: 'zookeeper://a/x', auth: 'ada:own' }\n  b: 'zookeeper://b/x'\n  p: 'postgres://jobs@p/db'\n${list}`

  test('of one board are not sent to the servers of another', async () => {
    const named = await opened(yaml('board: [a, b]'), {})
    expect(named.map(({ options }) => options)).toEqual([digest('ada:own'), {}])
    const reversed = await opened(yaml('board: [b, a]'), {})
    expect(reversed.map(({ options }) => options)).toEqual([{}, digest('ada:own')])
  })

  test('of the environment are for boards that the user has named, and not for those of a file that was only found', async () => {
    const env = { JOBBOARD_ZOOKEEPER_AUTH: 'eve:env', PGPASSWORD: 'env' }
    const found = await opened(yaml('board: [b, a, p]'), env)
    expect(found.map(({ board, options }) => [board, options])).toEqual([
      ['zookeeper://b/x', {}],
      ['zookeeper://a/x', digest('ada:own')],
      // With an empty password, the driver does not take that of the environment.
      ['postgres://jobs:@p/db', {}],
    ])
    const typed = await opened(yaml(''), env, { board: ['b', 'a', 'p'] })
    expect(typed.map(({ board, options }) => [board, options])).toEqual([
      ['zookeeper://b/x', digest('eve:env')],
      ['zookeeper://a/x', digest('ada:own')],
      ['postgres://jobs@p/db', {}],
    ])
  })

  test('logbooks with a key of their own are refused for one of several boards', async () => {
    const text = `boards: { a: { uri: 'redis://a', persistence: own } }\npersistences: { own: { uri: 'directory:x', key: k } }\nboard: [a, 'redis://b']`
    await expect(opened(text, {})).rejects.toThrow(/board a has logbooks with a key or a codec of their own/)
  })
})

describe('wrong usage:', () => {
  test.each<[string, readonly string[], RegExp]>([
    [
      'two boards for another command',
      ['jobs', '--board', 'memory:a', '--board', 'memory:b'],
      /--board was given 2 times: jobboard jobs uses one board; only jobboard conductor, exporter and ui take several$/,
    ],
    [
      'the same board twice',
      ['conductor', '--board', 'redis://h', '--board', 'redis://h:6379/0', '--flows', 'flows.js'],
      /boards\[0\] and boards\[1\] are the same board, redis:\/\/h:6379\/0: name each board once$/,
    ],
    [
      'the same queue twice',
      ['conductor', '--queue', 'a,b', '--queue', 'a', '--flows', 'flows.js'],
      /a conductor: queues contains "a" twice$/,
    ],
    [
      'a queue whose name is not valid',
      ['conductor', '--queue', 'a*b', '--flows', 'flows.js'],
      /a conductor: queue "a\*b" must not contain \*, commas, = .*; \* is allowed only as the last character/,
    ],
    [
      'a weight of 0',
      ['conductor', '--queue', 'a=0,b=1', '--flows', 'flows.js'],
      /the weight of queue "a" must be a whole number from 1 to 1000000, got 0; to stop serving the queue/,
    ],
    [
      'a queue without a weight among others',
      ['conductor', '--queue', 'a', '--queue', 'b=1', '--flows', 'flows.js'],
      /--queue a needs a weight, as in --queue a=1, because other queues have one$/,
    ],
    [
      'weights of other boards',
      ['conductor', '--weights', '1,2', '--flows', 'flows.js'],
      /--weights must have one number for each board: 1 in place of 2$/,
    ],
    [
      'a weight that is no number',
      ['conductor', '--weights', 'x', '--flows', 'flows.js'],
      /--weights must be whole numbers from 1/,
    ],
    [
      'a memory board among them',
      ['conductor', '--board', 'redis://a', '--board', 'memory:b', '--flows', 'flows.js'],
      /board memory:b would end with this command/,
    ],
  ])('%s', async (_, args, message) => {
    const { exitCode, stdout, stderr } = await place.jobboard(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr.trimEnd()).toMatch(message)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  })
})
