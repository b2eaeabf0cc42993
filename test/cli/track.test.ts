/** `jobboard track`, sealed logbooks, and what is hidden on the command line. */
import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeEach, describe, expect } from 'vitest'
import { openBoard } from '../../src/index.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { createDatabase } from '../support/postgres-database.ts'
import { usual as test, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining } from './workplace.ts'

const MODULE = `
import { compressed, input, linear, NonRetryable, task } from 'jobboard'

const login = task('login', {
  provides: 'session',
  execute: async (_, ctx) => {
    ctx.log.info({ password: 'hunter2' }, 'logged in')
    return { user: 'ada', passWord: 'hunter2', big: 2n ** 60n, bytes: Uint8Array.of(1, 2), at: new Date(0) }
  },
})
const say = task('say', { requires: ['session'], execute: async ({ session }) => 'hello ' + session.user })
const refuse = task('refuse', { execute: async () => { throw new NonRetryable('no: {"password":"hunter2"}') } })

export const hello = linear('hello', input(), login, say)
export const refused = linear('refused', input(), refuse)
export const codec = { name: 'mirror', encode: (bytes) => bytes.toReversed(), decode: (bytes) => bytes.toReversed() }
`

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', MODULE)
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

const NEVER = '0199c0de-0000-7000-8000-000000000001'
const INSTANT = expect.stringMatching(/^\d{4}-\d\d-\d\dT/)

async function post(...args: string[]): Promise<string> {
  const { stdout, stderr } = await place.jobboard(['post', ...args])
  expect(stderr).toBe('')
  return stdout.trim()
}

async function track(uuid: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const plain = await place.jobboard(['track', uuid, ...args], { env })
  const json = await place.jobboard(['track', uuid, '--json', ...args], { env })
  expect(json.exitCode, json.stderr).toBe(plain.exitCode)
  return { ...plain, said: jsonLines(json.stdout)[0] }
}

/** Runs what is on the board, in a process of its own, until the board is empty. */
async function conduct(...args: string[]) {
  const conductor = place.start(['conductor', '--flows', 'flows.js', '--name', 'worker', ...args])
  await conductor.says('Ctrl-C stops it')
  await expect.poll(async () => (await place.jobboard(['jobs', '--json'])).stdout).toBe('')
  conductor.process.kill('SIGTERM')
  return conductor.ended
}

describe.skipIf(!zookeeperHosts)('a job is followed', () => {
  test('from waiting to its results, or to the trash', async () => {
    const [done, trashed] = [await post('hello'), await post('refused')]
    const waiting = await track(done)
    expect(waiting.exitCode).toBe(0)
    expect(waiting.stderr).toContain('there are no logbooks in')
    expect(waiting.stdout).toMatch(
      new RegExp(
        `^job ${done}  waiting\n  waits for its turn; no conductor is connected to this board\n  since     \\S+\n  runs      0\n$`,
      ),
    )
    expect(waiting.said).toEqual({ uuid: done, status: 'waiting', tasks: {}, since: INSTANT, runs: 0 })
    await using board = await openBoard(place.board)
    await board.pause({ by: 'ada', reason: 'the database moves' })
    expect((await track(done)).stdout).toMatch(/^ {2}because +the board is paused by ada: the database moves$/m)
    await board.resume()
    expect(await conduct()).toMatchObject({ exitCode: 0 })

    const ended = await track(done)
    expect(ended.said).toEqual({
      uuid: done,
      status: 'done',
      tasks: { login: 'SUCCESS', say: 'SUCCESS' },
      at: INSTANT,
      results: {
        login: {
          user: 'ada',
          passWord: 'hunter2',
          big: '1152921504606846976',
          bytes: 'AQI=',
          at: '1970-01-01T00:00:00.000Z',
        },
        say: 'hello ada',
      },
    })
    expect(ended.stdout).toMatch(
      /^job \S+ {2}done\n {2}at {8}\S+\n\nTASK {3}STATE {4}RESULT\nlogin {2}SUCCESS {2}\{"user"/,
    )
    const failed = await track(trashed)
    expect(failed.stdout).toContain(`job ${trashed}  trashed\n`)
    expect(failed.said).toMatchObject({
      status: 'trashed',
      tasks: { refuse: 'REVERTED' },
      failures: [{ name: 'NonRetryable' }],
    })
  })

  variant('by the beginning of its uuid, and in capitals, wherever it is', async () => {
    const [done, trashed] = [await post('hello'), await post('refused')]
    const looks = async (uuid: string) => {
      const beginning = uuid.slice(0, 30).toUpperCase()
      expect((await track(beginning)).said).toMatchObject({ uuid })
      expect((await track(uuid.toUpperCase())).said).toMatchObject({ uuid })
      const shown = await place.jobboard(['show', beginning, '--json'])
      expect(jsonLines(shown.stdout)[0]).toMatchObject({ uuid })
    }
    await looks(done)
    await conduct()
    await looks(done)
    await looks(trashed)
    const both = await track(done.slice(0, 4))
    expect(both).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('matches 2 jobs') })
  })

  test('and of one that never was it is said, exit code 1', async () => {
    await post('hello')
    const unknown = await track(NEVER)
    expect(unknown).toMatchObject({ exitCode: 1, stdout: '', said: { uuid: NEVER, status: 'unknown' } })
    expect(unknown.stderr).toContain(`job ${NEVER} is not on ${place.board} nor in its trash`)
    const nowhere = await place.bare(['track', NEVER, '--board', place.board])
    expect(nowhere).toMatchObject({ exitCode: 2 })
    expect(nowhere.stderr).toContain('no logbooks were named')
    expect(await place.jobboard(['track', '42'])).toMatchObject({ exitCode: 2, stdout: '' })
  })

  variant('with what is secret hidden, in tables, JSON and logs', async () => {
    const [done, trashed] = [await post('hello'), await post('refused')]
    const { stderr } = await conduct('--redact', 'password')
    expect(stderr).toContain('logged in')
    expect(stderr).not.toContain('hunter2')
    for (const uuid of [done, trashed]) {
      for (const told of [
        await track(uuid, ['--redact', 'PASSWORD,x']),
        await track(uuid, [], { JOBBOARD_REDACT: 'pass-word' }),
      ]) {
        expect(told.stdout).toContain('[redacted]')
        expect(`${told.stdout}${JSON.stringify(told.said)}`).not.toContain('hunter2')
      }
    }
    // The conductor hid it from the board, too. What one without --redact has put there is hidden by who looks at it.
    expect((await place.jobboard(['trash', 'list', '--json'])).stdout).toContain('[redacted]')
    expect((await place.jobboard(['trash', 'list', '--json'])).stdout).not.toContain('hunter2')
    const open = await post('refused')
    await conduct()
    for (const command of [
      ['show', open],
      ['trash', 'list'],
      ['trash', 'list', '--json'],
    ]) {
      expect((await place.jobboard(command)).stdout).toContain('hunter2')
      const { stdout } = await place.jobboard(command, { env: { JOBBOARD_REDACT: 'password' } })
      expect(stdout).toContain('[redacted]')
      expect(stdout).not.toContain('hunter2')
    }
  })

  test('in sealed logbooks, by who has the key or the codec', async () => {
    const key = randomBytes(32).toString('base64')
    const first = await post('hello')
    const codec = ['--codec', 'flows.js']
    await conduct(...codec)
    const sealed = await track(first, codec)
    expect(sealed.stderr).toBe('')
    expect(sealed.said).toMatchObject({ results: { say: 'hello ada' } })
    for (const command of ['track', 'show']) {
      const { exitCode, stdout, stderr } = await place.jobboard([command, first], {
        env: { JOBBOARD_LOGBOOK_KEY: key },
      })
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
      expect(stderr).toMatch(
        /^jobboard: logbook [\da-f-]+: cannot read the results of atom login: they were written with the codec mirror, which was not given; [^\n]+ on a command line, the key in JOBBOARD_LOGBOOK_KEY, or --codec\n$/,
      )
    }
    const wrong: readonly [Record<string, string>, readonly string[], string][] = [
      [{ JOBBOARD_LOGBOOK_KEY: 'hunter2' }, [], 'JOBBOARD_LOGBOOK_KEY must be the base64 of 32 bytes'],
      [{ JOBBOARD_LOGBOOK_KEY: key }, codec, 'both define how logbooks are sealed'],
      [{}, ['--codec', 'none.js'], 'module none.js does not exist'],
    ]
    for (const [env, args, says] of wrong) {
      const { exitCode, stderr } = await place.jobboard(['track', first, ...args], { env })
      expect(exitCode).toBe(2)
      expect(stderr).toContain(says)
      expect(stderr).not.toContain('hunter2')
    }
  })
})

describe.skipIf(!zookeeperHosts)('looking into Postgres', () => {
  variant('makes no tables', async () => {
    await using server = await createDatabase()
    const uuid = await post('hello')
    const persistence = ['--persistence', server.uri]
    for (const command of ['show', 'track']) {
      const { exitCode, stdout, stderr } = await place.jobboard([command, uuid, ...persistence])
      expect(exitCode).toBe(0)
      expect(stdout).toContain(command === 'track' ? '  waiting\n' : 'no logbook: no run of it has begun')
      expect(stderr).toBe(
        `jobboard: there are no logbooks in ${server.uri.replace('postgres@', '***@')}: schema jobboard has no tables of logbooks; the first conductor that uses this location creates them\n`,
      )
    }
    expect(await conduct(...persistence)).toMatchObject({ exitCode: 0 })
    expect((await track(uuid, persistence)).said).toMatchObject({ status: 'done' })
  })
})
