/** A job is taken away from a conductor whose task hangs, by the command line, and another conductor does it. */
import { afterAll, afterEach, beforeEach, describe, expect } from 'vitest'
import { openBoard } from '../../src/index.ts'
import { refresh } from '../board/jobs.ts'
import { createDatabase } from '../support/postgres-database.ts'
import { startRedis } from '../support/redis.ts'
import { usual as test, testRows } from '../variant.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining } from './workplace.ts'

/** The task of a conductor that is stuck listens to its signal, and ends all the same never. */
const FLOWS = `
import { input, linear, task } from 'jobboard'
const work = task('work', { execute: async (_, ctx) => {
  if (process.env.ROLE !== 'stuck') return console.log('done by the other one')
  ctx.signal.addEventListener('abort', () => console.log('aborted: ' + ctx.signal.reason))
  console.log('hangs')
  await new Promise(() => setInterval(() => undefined, 1_000))
} })
export const report = linear('report', input(), work)
`

afterAll(killRemaining)

testRows([['ZooKeeper'], ['Postgres'], ['Redis']], ([kind]) => kind === 'ZooKeeper')(
  'a real conductor, on %s',
  async (kind) => {
    await using server = await serverOf(kind)
    await using place = await createCliFolder(server ? { board: server.uri } : {})
    await place.write('flows.mjs', FLOWS)
    const { stdout } = await place.jobboard(['post', 'report'])
    const uuid = stdout.trim()
    const conduct = (name: string) =>
      place.start(['conductor', '--flows', './flows.mjs', '--concurrency', '1', '--name', name], {
        env: { ROLE: name },
      })
    const stuck = conduct('stuck')
    await stuck.says('hangs')
    const other = conduct('other')
    await other.says('conductor other runs report')
    const done = other.says('done by the other one')
    const aborted = stuck.says('aborted: ')
    const released = await place.jobboard(['release', uuid, '--reason', 'hangs since noon'])
    expect(released).toEqual({
      exitCode: 0,
      stdout: `job ${uuid} (report) was released: run 1 of stuck has lost it\n`,
      stderr: '',
    })
    await Promise.all([done, aborted])
    expect(stuck.heard()).toMatch(new RegExp(`aborted: ClaimLost: job ${uuid} \\(report\\): the claim was taken away`))
    expect(await place.jobboard(['wait', uuid])).toMatchObject({ exitCode: 0, stdout: 'COMPLETE\n' })
    stuck.process.kill('SIGKILL')
    other.process.kill('SIGTERM')
    expect((await other.ended).exitCode).toBe(0)
  },
)

async function serverOf(kind: string): Promise<(AsyncDisposable & { readonly uri: string }) | undefined> {
  if (kind === 'ZooKeeper') return undefined
  const server = kind === 'Postgres' ? await createDatabase() : await startRedis()
  return { uri: server.uri, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

describe('what there is to say', () => {
  let place: CliFolder

  beforeEach(async () => {
    place = await createCliFolder()
  })
  afterEach(async () => place[Symbol.asyncDispose]())

  test('a job that waits, or has left the board, has no claim: one line, and exit code 1', async () => {
    const uuid = (await place.jobboard(['post', 'report'])).stdout.trim()
    const waiting = await place.jobboard(['release', uuid])
    expect(waiting).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `jobboard: release of job ${uuid} (report): it is unclaimed, so there is no claim to release\n`,
    })
    await using board = await openBoard(place.board)
    await (await board.claim(await board.find(uuid))).consume()
    const gone = await place.jobboard(['release', uuid])
    expect([gone.exitCode, gone.stdout]).toEqual([1, ''])
    expect(gone.stderr).toMatch(/^jobboard: job .* is not on .*\n$/)
  })

  test('of a run, of several jobs, as JSON', async () => {
    const uuids = [
      (await place.jobboard(['post', 'a'])).stdout.trim(),
      (await place.jobboard(['post', 'b'])).stdout.trim(),
    ]
    await using board = await openBoard(place.board, { who: 'somebody' })
    await refresh(board)
    for (const uuid of uuids) await board.claim(await board.find(uuid))
    const [first = '', second = ''] = uuids
    const other = await place.jobboard(['release', first, '--run', '2'])
    expect([other.exitCode, other.stderr]).toEqual([
      1,
      `jobboard: release of job ${first} (a): run 1 of somebody has it, not run 2; nothing was changed\n`,
    ])
    const both = await place.jobboard(['release', first, second, '--json'])
    expect([both.exitCode, both.stderr]).toEqual([0, 'released 2 of 2\n'])
    expect(jsonLines(both.stdout)).toEqual(
      expect.arrayContaining([
        { uuid: first, name: 'a', state: 'UNCLAIMED', released: { owner: 'somebody', run: 1 } },
        { uuid: second, name: 'b', state: 'UNCLAIMED', released: { owner: 'somebody', run: 1 } },
      ]),
    )
    expect((await place.jobboard(['show', first])).stdout).toMatch(/somebody +returned +released by /)
  })

  test.each([
    [['release'], /missing required argument 'uuid'/],
    [['release', '0199c0de-0000-7000-8000-000000000001', '--run', '0'], /--run must be the number of a run, from 1/],
    [['release', '0199c0de-0000-7000-8000-000000000001', '--run', 'two'], /--run must be the number of a run/],
    [
      ['release', '0199c0de-0000-7000-8000-000000000001', '0199c0de-0000-7000-8000-000000000002', '--run', '1'],
      /name one job/,
    ],
    [['release', 'nonsense'], /is not a uuid/],
  ])('wrong usage is refused: %j', async (args, line) => {
    await place.jobboard(['post', 'report'])
    const { exitCode, stderr } = await place.jobboard(args)
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(line)])
  })
})
